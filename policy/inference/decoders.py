"""Decoders: each prompt is read once, and answers are then extended one token at a time.

`TransformerDecoder` runs the layers of Qwen3 or Llama faster than the library's own loop. The prompt of a board is read
once, by the model itself; its keys and values then serve all answers to the board, which attend to them together. The
keys and values of answers are in buffers that grow, because a long answer is more often possible than sampled. Two
attentions, to the prompt and to the answer, share one softmax.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional
from transformers import DynamicCache, LlamaForCausalLM, PreTrainedModel, Qwen3ForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from lakewright.policy.networks.board_network import BoardDecoder, BoardNetwork

Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values
SMALL = 2**22  # parameters of matrices that are copied next to each other
FIRST = 64  # tokens of an answer that buffers hold at first


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


def ends_answers_singly(model: PreTrainedModel) -> bool:
    """Return True if each answer to a prompt is decoded until it ends, whatever the others do.

    A board network reads equal boards once anyway; a transformer decodes the answers to a prompt together.
    """
    return isinstance(model, BoardNetwork)


def decoder_of(model: PreTrainedModel) -> Callable[[int, int], AnswerDecoder] | None:
    """Return a function that makes a decoder of a model; None if the model has none.

    It takes the number of answers to a prompt and the length of the longest.
    """
    if isinstance(model, BoardNetwork):
        return functools.partial(BoardDecoder, model)
    return functools.partial(TransformerDecoder, model) if has_known_layers(model) else None


def has_known_layers(model: Any) -> bool:
    """Return True if the layers of a model are among those that are decoded here."""
    config = model.config
    biased = getattr(config, "attention_bias", False) or getattr(config, "mlp_bias", False)
    return isinstance(model, LlamaForCausalLM | Qwen3ForCausalLM) and not biased


class TransformerDecoder:
    """The state of B boards with G answers each: keys and values of prompts and of answers so far.

    Shapes: B boards, G copies, h heads of keys, each for r heads of queries, P prompt positions (padded on the left),
    T answer positions, d a head's width.
    """

    def __init__(self, model: Any, copies: int, length: int) -> None:
        self._model: LlamaForCausalLM | Qwen3ForCausalLM = model
        self._copies, self._length = copies, length
        self._layers = [_Layer(layer) for layer in model.model.layers]
        self._length_so_far = 0

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
        self._prompts: list[Pair] = [(layer.keys, layer.values) for layer in layers]
        # A long answer is rare: buffers begin small and are doubled on demand.
        room = min(FIRST, self._length)
        shape = (*self._prompts[0][0].shape[:2], self._copies, room, self._prompts[0][0].shape[-1])
        self._answers: list[Pair] = [(keys.new_empty(shape), keys.new_empty(shape)) for keys, _ in self._prompts]
        self._bias = torch.zeros_like(mask, dtype=self._prompts[0][0].dtype).masked_fill_(mask == 0, -torch.inf)
        self._read = mask.sum(1)
        return output.logits.expand(-1, self._copies, -1)

    def add_tokens(self, tokens: torch.Tensor) -> torch.Tensor:
        """Add one token to every answer, int [B, G]: the logits of the next, [B, G, V]."""
        base = self._model.model
        x = base.embed_tokens(tokens)
        # Padding is on the left, so positions count the tokens read of each prompt, not columns.
        places = (self._read + self._length_so_far)[:, None].expand(tokens.shape)
        cos, sin = base.rotary_emb(x, places)
        self._length_so_far += 1
        self._make_room()
        for layer, prompt, answer in zip(self._layers, self._prompts, self._answers, strict=True):
            x = layer.forward(x, cos, sin, prompt, answer, self._length_so_far, self._bias)
        return self._model.lm_head(base.norm(x))

    def _make_room(self) -> None:
        """Double the buffers of answers if the next token needs it: one layer after another, as all are large."""
        room = self._answers[0][0].shape[3]
        if self._length_so_far > room:
            more = (0, 0, 0, min(room, self._length - room))
            for place, (keys, values) in enumerate(self._answers):
                self._answers[place] = functional.pad(keys, more), functional.pad(values, more)

    def select_boards(self, boards: torch.Tensor) -> None:
        """Continue with some boards only, int [B']."""
        self._prompts = [(keys[boards], values[boards]) for keys, values in self._prompts]
        self._answers = [(keys[boards], values[boards]) for keys, values in self._answers]
        self._bias, self._read = self._bias[boards], self._read[boards]


def cache_rows(cache: DynamicCache, rows: torch.Tensor) -> DynamicCache:
    """Return the keys and values of some rows, int [B], which may repeat; gradients included."""
    chosen = DynamicCache()
    layers: Any = cache.layers
    for number, layer in enumerate(layers):
        chosen.update(layer.keys[rows], layer.values[rows], number)
    return chosen


def common_prefix(prompts: Sequence[list[int]]) -> int:
    """Return the number of tokens that all prompts begin with.

    The last token of a prompt never counts, because its scores are needed.
    """
    first, last = min(prompts), max(prompts)  # all others lie between these
    shorter = min(len(prompt) for prompt in prompts) - 1
    return next((place for place in range(shorter) if first[place] != last[place]), shorter)


class _Matrices:
    """Matrices of the same input, joined into one if they are small: then a call costs more than the copy."""

    def __init__(self, *linears: nn.Linear) -> None:
        self._weights = [linear.weight for linear in linears]
        small = sum(weight.numel() for weight in self._weights) <= SMALL
        self._whole = _cast_for_autocast(torch.cat(self._weights)) if small else None

    def __call__(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        if self._whole is None:
            return [functional.linear(x, weight) for weight in self._weights]
        return functional.linear(x, self._whole).split([len(weight) for weight in self._weights], -1)


class _Layer:
    """One layer of Qwen3 or Llama."""

    def __init__(self, layer: Any) -> None:
        self._layer, self._attention, self._mlp = layer, layer.self_attn, layer.mlp
        self._into = _Matrices(self._attention.q_proj, self._attention.k_proj, self._attention.v_proj)
        self._gate_up = _Matrices(self._mlp.gate_proj, self._mlp.up_proj)

    def forward(
        self,
        x: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        prompt: Pair,
        answer: Pair,
        length: int,
        bias: torch.Tensor,
    ) -> torch.Tensor:
        """Return the states [B, G, hidden] after the layer, and add the keys and values of this token to `answer`.

        Args:
            x: [B, G, hidden], the states before it.
            cos, sin: [B, G, d], the rotary angles of this token's position.
            prompt: keys and values of prompts, [B, h, P, d].
            answer: buffers of the keys and values of answers, [B, h, G, room, d].
            length: T, the tokens of answers with this one.
            bias: [B, P], minus infinity at padding.
        """
        attention = self._attention
        parts = self._into(_apply_norm(self._layer.input_layernorm, x))
        query, key, value = (part.unflatten(-1, (-1, attention.head_dim)) for part in parts)  # [B, G, h or h * r, d]
        if isinstance(attention, Qwen3Attention):
            query, key = _apply_norm(attention.q_norm, query), _apply_norm(attention.k_norm, key)
        query = _apply_rotary(query, cos, sin).unflatten(2, (-1, attention.num_key_value_groups)).transpose(1, 2)
        keys, values = (buffer[:, :, :, :length] for buffer in answer)
        keys[:, :, :, -1] = _apply_rotary(key, cos, sin).transpose(1, 2)
        values[:, :, :, -1] = value.transpose(1, 2)
        attended = _attend_to_both(query * attention.scaling, prompt, (keys, values), bias)
        x = x + attention.o_proj(attended.transpose(1, 2).flatten(2))
        gate, up = self._gate_up(_apply_norm(self._layer.post_attention_layernorm, x))
        return x + self._mlp.down_proj(self._mlp.act_fn(gate) * up)


def _cast_for_autocast(weight: torch.Tensor) -> torch.Tensor:
    """Return the weight in the type of autocast, which would otherwise convert a copy at every step."""
    kind = weight.device.type
    return weight.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else weight


def _attend_to_both(query: torch.Tensor, prompt: Pair, answer: Pair, bias: torch.Tensor) -> torch.Tensor:
    """Return the attention to a board's prompt and to the answer itself, [B, h, G, r, d].

    Args:
        query: [B, h, G, r, d].
        prompt: keys and values [B, h, P, d].
        answer: keys and values [B, h, G, T, d].
        bias: [B, P], minus infinity at padding.
    """
    copies = query.shape[2:4]
    # The prompt of a board is shared by its G answers, so their queries are rows of one matrix product. One softmax
    # over both parts gives the same weights as attention to prompt and answer joined, which are never copied together.
    before = (query.flatten(2, 3) @ prompt[0].mT + bias[:, None, None]).unflatten(2, copies)
    since = query @ answer[0].mT
    weights = torch.cat([before, since], -1).softmax(-1, dtype=torch.float32).to(query.dtype)
    of_prompt, of_answer = weights.split([before.shape[-1], since.shape[-1]], -1)
    return (of_prompt.flatten(2, 3) @ prompt[1]).unflatten(2, copies) + of_answer @ answer[1]


def _apply_norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the RMS norm of x, in one fused operation."""
    return functional.rms_norm(x, (x.shape[-1],), norm.weight, norm.variance_epsilon)


def _apply_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Return the rotary embedding of [B, G, h, d] by angles [B, G, d]."""
    one, other = x.chunk(2, -1)
    return x * cos[:, :, None] + torch.cat((-other, one), -1) * sin[:, :, None]
