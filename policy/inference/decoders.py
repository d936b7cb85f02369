"""Decoders: each prompt is read once, and answers are then extended one token at a time.

`TransformerDecoder` runs the layers of Qwen3 or Llama faster than the library's own loop. The prompt of a board is read
once, by the model itself; its keys and values then serve all answers to the board, which attend to them together. The
keys and values of answers are in buffers that grow, because a long answer is more often possible than sampled. Weights
are converted once to the precision that the model computes in. On a GPU, which runs the thousand small kernels of a
step faster than a processor core starts them, a step is recorded as a CUDA graph and replayed.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch.nn import functional
from transformers import DynamicCache, LlamaForCausalLM, PreTrainedModel, Qwen3ForCausalLM

from lakewright.policy.inference.decoder_layers import DecoderLayer, Pair, apply_norm, computing_dtype
from lakewright.policy.inference.step_graph import StepGraph, uses_graphs
from lakewright.policy.networks.board_network import BoardDecoder, BoardNetwork

FIRST = 64  # tokens of an answer that buffers hold at first
DROPPED = 0.75  # finished boards are dropped once at most this share is unfinished;
DROPPED_OF_GRAPH = 0.5  # where a step is recorded, at most this share, and only if so many tokens may follow,
WORTH_RECORDING_AGAIN = 256  # because a step must then be recorded again


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

    def is_dropping_worth(self, share: float, left: int) -> bool:
        """Return True if finished boards are to be dropped: `share` are unfinished, of at most `left` more tokens."""
        ...


def ends_answers_singly(model: PreTrainedModel) -> bool:
    """Return True if each answer to a prompt is decoded until it ends, whatever the others do.

    A board network reads equal boards once anyway; a transformer decodes the answers to a prompt together.
    """
    return isinstance(model, BoardNetwork)


def decoder_of(model: PreTrainedModel) -> Callable[[int, int], AnswerDecoder] | None:
    """Return a function that makes a decoder of a model; None if the model can't.

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
    N tokens read at once, T answer positions, d a head's width.

    Args:
        model: for Qwen3 or Llama, see `has_known_layers`; within `use_precision`, so that it computes in that
        precision.
        copies: G.
        length: tokens of the longest answer.
        steady: whether every step works on the same memory, so that it can be recorded; by default on a GPU.
    """

    def __init__(self, model: Any, copies: int, length: int, steady: bool | None = None) -> None:
        self._model: LlamaForCausalLM | Qwen3ForCausalLM = model
        self._copies, self._length = copies, length
        self._steady = uses_graphs(model.device) if steady is None else steady
        self._dtype = computing_dtype(model)
        self._layers = [DecoderLayer(layer, self._dtype) for layer in model.model.layers]
        self._head = model.lm_head.weight.to(self._dtype)
        self._length_so_far = 0
        self._graph: StepGraph | None = None
        self._is_tried = False  # whether a step ran with buffers of this shape, which a recording needs

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
        self._prompts: list[Pair] = [(layer.keys.to(self._dtype), layer.values.to(self._dtype)) for layer in layers]
        # A long answer is rare: buffers begin small and are doubled on demand.
        room = min(FIRST, self._length)
        shape = (*self._prompts[0][0].shape[:2], self._copies, room, self._prompts[0][0].shape[-1])
        # What no token has filled yet has a weight of 0, which is only 0 if it is a number.
        self._answers: list[Pair] = [(keys.new_zeros(shape), keys.new_zeros(shape)) for keys, _ in self._prompts]
        self._bias = torch.zeros_like(mask, dtype=self._prompts[0][0].dtype).masked_fill_(mask == 0, -torch.inf)
        self._read = mask.sum(1)
        self._place = self._read.new_zeros(1)  # of the next token in its answer
        return output.logits.expand(-1, self._copies, -1)

    def add_tokens(self, tokens: torch.Tensor) -> torch.Tensor:
        """Add one token to every answer, int [B, G]: the logits of the next, [B, G, V], until the next call."""
        return self.add_runs(tokens[..., None])

    def add_runs(self, tokens: torch.Tensor) -> torch.Tensor:
        """Add N tokens to every answer, int [B, G, N]: the logits of the next, [B, G, V], until the next call."""
        self._make_room(self._length_so_far + tokens.shape[-1])
        self._length_so_far += tokens.shape[-1]
        if not self._steady or tokens.shape[-1] > 1:
            return self._step(tokens)
        if self._graph is None and not self._is_tried:
            self._is_tried = True
            return self._step(tokens)
        if self._graph is None:
            self._tokens = tokens.clone()
            self._graph = StepGraph(lambda: self._step(self._tokens), tokens.device)
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

    def is_dropping_worth(self, share: float, left: int) -> bool:
        """As `AnswerDecoder`: dropping copies all keys and values, so it pays once many boards are finished."""
        return share <= DROPPED_OF_GRAPH and left >= WORTH_RECORDING_AGAIN if self._steady else share <= DROPPED

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
