"""Decoders: each prompt is read once, and answers are then extended one token at a time.

`TransformerDecoder` runs the layers of Qwen3 or Llama faster than the library's own loop. The prompt of a board is read
once, by the model itself; its keys and values then serve all answers to the board, which attend to them together. The
keys and values of answers are in buffers that grow, because a long answer is more often possible than sampled. Weights
are converted once to the precision that the model computes in. On a GPU, which runs the thousand small kernels of a
step faster than a processor core starts them, a step is recorded as a CUDA graph and replayed.

The layers of Qwen3 and Llama as `TransformerDecoder` runs them: few operations, and each in its own precision.

A model that computes in bfloat16 with weights in float32 does here what it does under torch's autocast: products of
matrices in bfloat16, sums, norms and rotations in float32. Autocast converts weights and states at each operation.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional
from transformers import DynamicCache, LlamaForCausalLM, PreTrainedModel, Qwen3ForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from lakewright.policy.inference.step_graph import StepGraph, uses_graphs
from lakewright.policy.networks.board_network import MOST_UNFINISHED, BoardDecoder, BoardNetwork

KeysAndValues = tuple[torch.Tensor, torch.Tensor]  # keys and values
SMALL = 2**22  # parameters of matrices that are copied next to each other


def computing_dtype(model: PreTrainedModel) -> torch.dtype:
    """Return the type of the products of a model: autocast's if it is on, else the weights'."""
    kind = model.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else model.dtype


class _Matrices:
    """Matrices of the same input, joined into one if that copies little: then calls cost more than the copy.

    Args:
        dtype: the type of the products.
        linears: layers without a bias, with or without an adapter of low rank.
    """

    def __init__(self, dtype: torch.dtype, *linears: Any) -> None:
        weights = [getattr(linear, "base_layer", linear).weight for linear in linears]
        self._rows = [len(weight) for weight in weights]
        joined = weights[0].dtype != dtype or sum(weight.numel() for weight in weights) <= SMALL
        parts = [torch.cat([weight.to(dtype) for weight in weights])] if joined and len(weights) > 1 else weights
        self._weights = [part.to(dtype) for part in parts]
        self._adapters = [_read_adapter(linear, dtype) for linear in linears]

    def multiply(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return the product of each matrix, its adapter added, with the states [..., hidden]."""
        x = x.to(self._weights[0].dtype)
        made: Sequence[torch.Tensor] = [functional.linear(x, weight) for weight in self._weights]
        if len(made) < len(self._rows):
            made = made[0].split(self._rows, -1)
        pairs = zip(made, self._adapters, strict=True)
        return [part + functional.linear(functional.linear(x, low[0]), low[1]) if low else part for part, low in pairs]


def _read_adapter(linear: Any, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the matrices [r, in] and [out, r] of a layer's adapter, scaled; None without one."""
    if not hasattr(linear, "lora_A"):
        return None
    (name,) = linear.active_adapters
    return linear.lora_A[name].weight.to(dtype), (linear.lora_B[name].weight * linear.scaling[name]).to(dtype)


class DecoderLayer:
    """One layer of Qwen3 or Llama. dtype: the type of its products, see `computing_dtype`."""

    def __init__(self, layer: Any, dtype: torch.dtype) -> None:
        self._layer, self._attention, self._mlp, self._dtype = layer, layer.self_attn, layer.mlp, dtype
        self._into = _Matrices(dtype, self._attention.q_proj, self._attention.k_proj, self._attention.v_proj)
        self._gate_up = _Matrices(dtype, self._mlp.gate_proj, self._mlp.up_proj)
        self._out, self._down = _Matrices(dtype, self._attention.o_proj), _Matrices(dtype, self._mlp.down_proj)

    def forward(
        self,
        x: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        prompt: KeysAndValues,
        answer: KeysAndValues,
        rows: torch.Tensor,
        bias: torch.Tensor,
    ) -> torch.Tensor:
        """Return the states [B, G, N, hidden] after the layer, and put the keys and values of its tokens in `answer`.

        Args:
            x: [B, G, N, hidden], the states before it.
            cos, sin: [B, G, N, 1, d], the rotary angles of the tokens; the first half of the sines is negated.
            prompt: keys and values of prompts, [B, h, P, d].
            answer: buffers of the keys and values of answers, [B, h, G, T, d].
            rows: int [N], where these are in the buffers.
            bias: [B, N, P + T], minus infinity at tokens that a token must not see.
        """
        attention = self._attention
        parts = self._into.multiply(apply_norm(self._layer.input_layernorm, x))
        query, key, value = (part.unflatten(-1, (-1, attention.head_dim)) for part in parts)  # [B, G, N, heads, d]
        if isinstance(attention, Qwen3Attention):
            query, key = apply_norm(attention.q_norm, query), apply_norm(attention.k_norm, key)
        turned = _apply_rotary(torch.cat([query, key], 3).to(self._dtype), cos, sin)
        query, key = turned.split([query.shape[3], key.shape[3]], 3)
        keys, values = answer
        keys.index_copy_(3, rows, key.to(keys.dtype).permute(0, 3, 1, 2, 4))
        values.index_copy_(3, rows, value.permute(0, 3, 1, 2, 4))
        query = (query * attention.scaling).to(self._dtype).unflatten(3, (-1, attention.num_key_value_groups))
        attended = attend_to_both(query.permute(0, 3, 1, 4, 2, 5), prompt, answer, bias)
        attended = attended.permute(0, 2, 4, 1, 3, 5).flatten(3)  # [B, G, N, h * r * d]
        x = x + self._out.multiply(attended)[0]
        gate, up = self._gate_up.multiply(apply_norm(self._layer.post_attention_layernorm, x))
        return x + self._down.multiply(self._mlp.act_fn(gate) * up)[0]


def attend_to_both(
    query: torch.Tensor, prompt: KeysAndValues, answer: KeysAndValues, bias: torch.Tensor
) -> torch.Tensor:
    """Return the attention to a board's prompt and to the answer itself, [B, h, G, r, N, d].

    Args:
        query: [B, h, G, r, N, d].
        prompt: keys and values [B, h, P, d].
        answer: keys and values [B, h, G, T, d].
        bias: [B, N, P + T], minus infinity at tokens that a token must not see.
    """
    each = query.shape[3:5]
    # The prompt of a board is shared by its G answers, so their queries are rows of one matrix product. One softmax
    # over both parts gives the same weights as attention to prompt and answer joined, which are never copied together.
    together = query.flatten(3, 4)  # [B, h, G, r * N, d]
    before = (together.flatten(2, 3) @ prompt[0].mT).unflatten(2, together.shape[2:4])
    scores = torch.cat([before, together @ answer[0].mT], -1).unflatten(3, each) + bias[:, None, None, None]
    weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype).flatten(3, 4)
    of_prompt, of_answer = weights.split([before.shape[-1], scores.shape[-1] - before.shape[-1]], -1)
    attended = (of_prompt.flatten(2, 3) @ prompt[1]).unflatten(2, together.shape[2:4]) + of_answer @ answer[1]
    return attended.unflatten(3, each)


def apply_norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the RMS norm of x in the precision of the norm's weight, in one fused operation."""
    return functional.rms_norm(x.to(norm.weight.dtype), (x.shape[-1],), norm.weight, norm.variance_epsilon)


def _apply_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Return the rotary embedding of [B, G, N, heads, d] by angles [B, G, N, 1, d], see `DecoderLayer.forward`."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


FIRST = 64  # tokens of an answer that buffers hold at first
# If a step is recorded, finished boards are dropped once at most this share is unfinished, and only if at least so many
# tokens may follow, because the step must then be recorded again.
MOST_UNFINISHED_OF_GRAPH, LEAST_TO_RECORD_AGAIN = 0.5, 256


class AnswerDecoder(Protocol):
    """The state of B boards with G answers each. V: the words of the vocabulary."""

    def read_prompts(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Read prompts int [B, P], padded on the left (mask: 0 there): the logits of the first word, [B, G, V]."""
        ...

    def add_tokens(self, tokens: torch.Tensor) -> torch.Tensor:
        """Add one word to every answer, int [B, G]: the logits of the next, [B, G, V]."""
        ...

    def select_boards(self, boards: torch.Tensor) -> None:
        """Continue with some boards only, int [B']."""
        ...

    def should_drop_finished(self, share: float, left: int) -> bool:
        """Return True if finished boards are to be dropped: `share` are unfinished, of at most `left` more tokens."""
        ...


def should_decode_singly(model: PreTrainedModel) -> bool:
    """Return True if each answer to a prompt is decoded until it ends, whatever the others do.

    A board network reads equal boards once anyway; a transformer decodes the answers to a prompt together.
    """
    return isinstance(model, BoardNetwork)


def find_decoder(model: PreTrainedModel) -> Callable[[int, int], AnswerDecoder] | None:
    """Return a function that makes a decoder of a model; None if the model can't.

    It takes the number of answers to a prompt and the length of the longest.
    """
    if isinstance(model, BoardNetwork):
        return functools.partial(BoardDecoder, model)
    return functools.partial(TransformerDecoder, model) if has_known_layers(model) else None


def has_known_layers(model: Any) -> bool:
    """Return True if the layers of a model are among those that are decoded here, with or without LoRA adapters."""
    config, base = model.config, find_base(model)
    biased = getattr(config, "attention_bias", False) or getattr(config, "mlp_bias", False)
    if not isinstance(base, LlamaForCausalLM | Qwen3ForCausalLM) or biased:
        return False
    of_peft = [module for module in base.modules() if type(module).__module__.startswith("peft.")]
    return type(base.lm_head) is nn.Linear and all(map(_is_plain_adapter, of_peft))


def find_base(model: Any) -> Any:
    """Return the model that an adapter (LoRA of peft) is part of; any other model unchanged."""
    kind = getattr(getattr(model, "active_peft_config", None), "peft_type", None)
    return model.get_base_model() if kind == "LORA" else model


def _is_plain_adapter(layer: Any) -> bool:
    """Return True if a layer of peft adds one product of low rank to a linear layer, and nothing else."""
    names = getattr(layer, "active_adapters", [])
    if len(names) != 1 or type(getattr(layer, "base_layer", None)) is not nn.Linear:
        return False
    (name,), off = names, layer.disable_adapters or layer.merged
    return not off and name in layer.lora_A and not (layer.lora_variant.get(name) or layer.lora_bias.get(name))


class TransformerDecoder:
    """The state of B boards with G answers each: keys and values of prompts and of answers so far.

    Shapes: B boards, G copies, h heads of keys, each for r heads of queries, P prompt positions (padded on the left),
    N tokens read at once, T answer positions, d a head's width.

    Args:
        model: a Qwen3 or Llama model, perhaps with an adapter, see `has_known_layers`; within `use_precision`, so that
        it computes in that precision.
        copies: G.
        length: tokens of the longest answer.
        steady: whether every step works on the same memory, so that it can be recorded; by default on a GPU.
    """

    def __init__(self, model: Any, copies: int, length: int, steady: bool | None = None) -> None:
        self._model: LlamaForCausalLM | Qwen3ForCausalLM = find_base(model)
        self._copies, self._length = copies, length
        self._steady = uses_graphs(model.device) if steady is None else steady
        self._dtype = computing_dtype(self._model)
        self._layers = [DecoderLayer(layer, self._dtype) for layer in self._model.model.layers]
        self._head = self._model.lm_head.weight.to(self._dtype)
        self._length_so_far = 0
        self._graph: StepGraph | None = None
        self._is_tried = False  # whether a step ran with buffers of this shape, which a recording needs
        self._has_room = True  # for recordings

    # The state, which `read_prompts` begins: keys and values of each layer, what no token of a prompt sees (-inf), the
    # tokens read of each prompt, the place of the next token in its answer, and the tokens of a recorded step.
    _prompts: list[KeysAndValues]
    _answers: list[KeysAndValues]
    _bias: torch.Tensor
    _read: torch.Tensor
    _place: torch.Tensor
    _tokens: torch.Tensor

    def read_prompts(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Read prompts int [B, P] (mask: 0 at padding): the logits of the first answer token, [B, G, V]."""
        cache = DynamicCache(config=self._model.config)
        output = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        layers: Any = cache.layers
        self._prompts = [(layer.keys.to(self._dtype), layer.values.to(self._dtype)) for layer in layers]
        # A long answer is rare: buffers begin small and are doubled on demand.
        room = min(FIRST, self._length)
        shape = (*self._prompts[0][0].shape[:2], self._copies, room, self._prompts[0][0].shape[-1])
        # What no token has filled yet has a weight of 0, which is only 0 if it is a number.
        self._answers = [(keys.new_zeros(shape), keys.new_zeros(shape)) for keys, _ in self._prompts]
        self._bias = torch.zeros_like(mask, dtype=self._prompts[0][0].dtype).masked_fill_(mask == 0, -torch.inf)
        self._read = mask.sum(1)
        self._place = self._read.new_zeros(1)
        return output.logits.expand(-1, self._copies, -1)

    def add_tokens(self, tokens: torch.Tensor) -> torch.Tensor:
        """Add one token to every answer, int [B, G]: the logits of the next, [B, G, V], until the next call."""
        return self.add_runs(tokens[..., None])

    def add_runs(self, tokens: torch.Tensor) -> torch.Tensor:
        """Add N tokens to every answer, int [B, G, N]: the logits of the next, [B, G, V], until the next call."""
        self._make_room(self._length_so_far + tokens.shape[-1])
        self._length_so_far += tokens.shape[-1]
        if not (self._steady and self._has_room) or tokens.shape[-1] > 1:
            return self._step(tokens)
        if self._graph is None and not self._is_tried:
            self._is_tried = True
            return self._step(tokens)
        if self._graph is None:
            self._tokens = tokens.clone()
            self._graph = StepGraph.record(lambda: self._step(self._tokens), tokens.device)
        if self._graph is None:
            self._has_room = False
            return self._step(tokens)
        self._tokens.copy_(tokens)
        return self._graph.replay()

    def _step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Run the model on tokens [B, G, N]; nothing here depends on where in its answer a token is, but tensors."""
        base, count = self._model.model, tokens.shape[-1]
        room = self._answers[0][0].shape[3] if self._steady else self._length_so_far
        with torch.autocast(tokens.device.type, enabled=False):
            x = base.embed_tokens(tokens)
            rows = self._place + torch.arange(count, device=tokens.device)
            # Padding is on the left, so positions count the tokens read of each prompt, not columns.
            places = (self._read[:, None] + rows).repeat_interleave(self._copies, 0)
            cos, sin = (part.view(*tokens.shape, 1, -1) for part in base.rotary_emb(x, places))
            half = sin.shape[-1] // 2
            sin = torch.cat([-sin[..., :half], sin[..., half:]], -1)
            later = torch.arange(room, device=tokens.device) > rows[:, None]
            since = torch.zeros(later.shape, dtype=self._bias.dtype, device=later.device)
            since = since.masked_fill_(later, -torch.inf).expand(len(self._bias), -1, -1)
            bias = torch.cat([self._bias[:, None].expand(-1, count, -1), since], -1)
            for layer, prompt, (keys, values) in zip(self._layers, self._prompts, self._answers, strict=True):
                answer = keys[:, :, :, :room], values[:, :, :, :room]
                x = layer.forward(x, cos, sin, prompt, answer, rows, bias)
            self._place += count
            last = apply_norm(base.norm, x[:, :, -1])
            return functional.linear(last.to(self._head.dtype), self._head)

    def _make_room(self, wanted: int) -> None:
        """Double the buffers of answers if the next tokens need it: one layer after another because all are large."""
        room = self._answers[0][0].shape[3]
        if wanted > room:
            more = (0, 0, 0, max(min(room, self._length - room), wanted - room))
            for place, (keys, values) in enumerate(self._answers):
                self._answers[place] = functional.pad(keys, more), functional.pad(values, more)
            self._forget_recording()

    def select_boards(self, boards: torch.Tensor) -> None:
        """Continue with some boards only, int [B']."""
        self._prompts = [(keys[boards], values[boards]) for keys, values in self._prompts]
        self._answers = [(keys[boards], values[boards]) for keys, values in self._answers]
        self._bias, self._read = self._bias[boards], self._read[boards]
        self._forget_recording()

    def should_drop_finished(self, share: float, left: int) -> bool:
        """See `AnswerDecoder`: dropping copies all keys and values, so it pays once many boards are finished."""
        if not self._steady:
            return share <= MOST_UNFINISHED
        return share <= MOST_UNFINISHED_OF_GRAPH and left >= LEAST_TO_RECORD_AGAIN

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` tokens of answers."""
        self._length_so_far = length
        self._place.fill_(length)

    def _forget_recording(self) -> None:
        self._graph, self._is_tried = None, False


def cache_rows(cache: DynamicCache, rows: torch.Tensor) -> DynamicCache:
    """Return the keys and values of some rows, int [B], which may repeat; gradients included."""
    chosen = DynamicCache()
    layers: Any = cache.layers
    for number, layer in enumerate(layers):
        chosen.update(layer.keys.index_select(0, rows), layer.values.index_select(0, rows), number)
    return chosen


def common_prefix(prompts: Sequence[list[int]]) -> int:
    """Return the number of tokens that all prompts begin with.

    The last token of a prompt never counts, because its scores are needed.
    """
    first, last = min(prompts), max(prompts)  # all others lie between these
    shorter = min(len(prompt) for prompt in prompts) - 1
    return next((place for place in range(shorter) if first[place] != last[place]), shorter)
