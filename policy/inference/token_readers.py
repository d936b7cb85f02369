"""Readers: a model that is asked one question, token after token, and reads no token twice.

An engineer's answer is a single one, so that only its own tokens can share a pass: those that a schema forces are read
together with the next token that was chosen.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import torch
from transformers import DynamicCache, PreTrainedModel

from lakewright.policy.inference.decoders import TransformerDecoder, common_prefix, has_known_layers
from lakewright.policy.models.building import set_mode, use_precision

AT_ONCE = 256  # tokens that are read in one pass after a prompt, because every one of them attends to all others


class TokenReader(Protocol):
    """A model with the keys and values of the tokens that it read last."""

    def read(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the logits float32 [V], on the CPU, of the token after some tokens."""
        ...


class JsonMatcher(Protocol):
    """The state of an answer under a grammar: see `lakewright.policy.inference.json_schema.Matcher`."""

    def take_token(self, token: int) -> None:
        """Add the next token."""
        ...

    def forced_tokens(self) -> list[int]:
        """Return the tokens that must follow."""
        ...

    @property
    def ended(self) -> bool:
        """True if nothing may follow."""
        ...


class CacheReader:
    """A reader of any causal model, which continues at whatever tokens two questions have in common."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model, self._ids = model, list[int]()
        self._cache = DynamicCache()  # of all tokens, also where a layer attends to the last ones alone

    @torch.inference_mode()
    def read(self, ids: Sequence[int]) -> torch.Tensor:
        """See `TokenReader`."""
        known = _count_known(self._ids, ids)
        if (more := self._cache.get_seq_length() - known) > 0:
            self._cache.crop(-more)
        with set_mode(self._model), use_precision(self._model):
            rest = torch.tensor([ids[known:]], device=self._model.device)
            output = self._model(input_ids=rest, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        self._ids = list(ids)
        return output.logits[0, -1].float().cpu()


class DecoderReader:
    """A reader of Qwen3 or Llama, fast on one question with many tokens of answer, and with several answers.

    Args:
        model: see `has_known_layers`.
        length: tokens of the longest answer; a longer one takes memory in smaller steps.
    """

    def __init__(self, model: PreTrainedModel, length: int) -> None:
        self._model, self._length = model, length
        self._ids: list[int] = []
        self._prompt = 0  # tokens that were read at first
        self._first: torch.Tensor | None = None  # the logits after them
        self._decoder: Any = None

    @torch.inference_mode()
    def read(self, ids: Sequence[int]) -> torch.Tensor:
        """See `TokenReader`."""
        known, before = _count_known(self._ids, ids), self._ids
        self._ids = list(ids)
        if self._first is not None and self._ids == before[: self._prompt]:  # the question once more
            return self._first
        with set_mode(self._model), use_precision(self._model):
            if known < self._prompt or not self._decoder:
                return self._begin(ids)
            return self._continue(ids, known)[0, 0].float().cpu()

    def _begin(self, ids: Sequence[int]) -> torch.Tensor:
        self._decoder, self._prompt = TransformerDecoder(self._model, 1, self._length), len(ids)
        prompt = torch.tensor([ids], device=self._model.device)
        self._first = self._decoder.read_prompts(prompt, torch.ones_like(prompt))[0, 0].float().cpu()
        return self._first

    def _continue(self, ids: Sequence[int], known: int) -> torch.Tensor:
        self._decoder.rewind(known - self._prompt)
        rest = torch.tensor([[ids[known:]]], device=self._model.device)
        for part in rest.split(AT_ONCE, -1):
            logits = self._decoder.add_runs(part)
        return logits


def _count_known(before: Sequence[int], ids: Sequence[int]) -> int:
    """Return how many tokens need not be read again: those in common, but not the last, whose scores are wanted."""
    return common_prefix([[*before, -1], list(ids)])


def make_reader(model: PreTrainedModel, length: int) -> TokenReader:
    """Return the faster reader of a model for answers to one question; length: tokens of the longest."""
    return DecoderReader(model, length) if has_known_layers(model) else CacheReader(model)


def write_tokens(
    reader: TokenReader,
    begun: Sequence[int],
    matcher: JsonMatcher | None,
    choose: Callable[[torch.Tensor], int],
    ends: Collection[int],
    most: int,
    stop: Callable[[list[int]], bool] = lambda said: False,
) -> list[int]:
    """Return the tokens of an answer, without an end token; the model is asked only if it has a choice.

    Args:
        reader: the model's reader.
        begun: the tokens before the answer.
        matcher: the matcher of the answer's grammar, at the beginning; None if the answer is free.
        choose: picks the next token by the logits [V].
        ends: tokens that end an answer.
        most: tokens of the longest answer.
        stop: returns True if the answer so far is the whole answer.
    """
    answer: list[int] = []
    while len(answer) < most and not (stop(answer) or (matcher and matcher.ended)):
        forced = matcher.forced_tokens()[: most - len(answer)] if matcher else []
        chosen = forced or [choose(reader.read([*begun, *answer]))]
        if chosen[0] in ends:
            break
        answer += chosen
        if matcher:
            for token in chosen:
                matcher.take_token(token)
    return answer
