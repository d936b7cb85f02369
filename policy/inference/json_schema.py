"""JSON of a schema as a grammar: the tokens that may follow an answer so far, by llguidance."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.policy.inference.grammar import Grammar

MISSING = "llguidance is missing; install lakewright[structured]"


def schema_grammar(tokenizer: PreTrainedTokenizerFast, schema: dict[str, Any]) -> Grammar:
    """Return the grammar of JSON of a schema. Raises InputError as `Matcher` and `compile_schema`."""
    words, grammar = read_words(tokenizer), compile_schema(schema)

    def open_to(answer: Sequence[int]) -> Iterator[np.ndarray]:
        matcher = Matcher(words, grammar)
        for token in answer:
            yield np.flatnonzero(matcher.allowed_tokens())
            matcher.take_token(token)

    return open_to


class SchemaMask:
    """A mask of the tokens that cannot continue JSON of a schema.

    Args:
        words: the vocabulary, see `read_words`.
        schema: the JSON's schema.
        rows: answers that are decoded together.
    """

    def __init__(self, words: Any, schema: dict[str, Any], rows: int) -> None:
        grammar = compile_schema(schema)
        self._matchers = [Matcher(words, grammar) for _ in range(rows)]
        self._seen = 0

    def __call__(self, answers: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores [B, V] after the answers so far [B, T]: minus infinity for tokens that may not follow."""
        for matcher, row in zip(self._matchers, answers[:, self._seen :].tolist(), strict=True):
            for token in row:
                matcher.take_token(token)
        self._seen = answers.shape[1]
        allowed = np.zeros(scores.shape, bool)
        for row, matcher in enumerate(self._matchers):
            bits = matcher.allowed_tokens()
            allowed[row, : len(bits)] = bits[: scores.shape[1]]
        return scores.masked_fill(~torch.from_numpy(allowed).to(scores.device), -torch.inf)


class Matcher:
    """The state of JSON that is being decoded. Raises InputError if llguidance does not know the schema."""

    def __init__(self, words: Any, grammar: str) -> None:
        from llguidance import LLMatcher

        self._matcher = LLMatcher(words, grammar)
        self._check_error()

    def take_token(self, token: int) -> None:
        """Add the next token; tokens after the end are ignored."""
        if not self._matcher.is_stopped():
            self._matcher.consume_token(token)

    def forced_tokens(self) -> list[int]:
        """Return the tokens that must follow because nothing else is allowed; empty if there is a choice."""
        return list(self._matcher.compute_ff_tokens())

    @property
    def ended(self) -> bool:
        """True if nothing may follow."""
        return bool(self._matcher.is_stopped())

    def allowed_tokens(self) -> np.ndarray:
        """Return the tokens that may follow: bool [V], V a multiple of 32 that is at least the vocabulary."""
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), np.uint8), bitorder="little")
        self._check_error()
        return bits.astype(bool)

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the logits [V] of the next token, minus infinity for tokens that may not follow."""
        allowed = torch.from_numpy(self.allowed_tokens()[: len(logits)])
        return logits.masked_fill(~allowed, -torch.inf)

    def _check_error(self) -> None:
        if self._matcher.is_error():
            raise InputError(f"schema: {self._matcher.get_error().splitlines()[0]:.200}; simplify it")


def read_words(tokenizer: PreTrainedTokenizerFast) -> Any:
    """Return a vocabulary as llguidance reads it. Raises InputError if that is missing."""
    try:
        from llguidance.hf import from_tokenizer
    except ImportError as error:
        raise InputError(MISSING) from error
    return from_tokenizer(tokenizer)


def compile_schema(schema: dict[str, Any]) -> str:
    """Return the grammar of JSON of a schema. Raises InputError if llguidance is missing."""
    try:
        from llguidance import LLMatcher
    except ImportError as error:
        raise InputError(MISSING) from error
    return LLMatcher.grammar_from_json_schema(json.dumps(schema), defaults={"whitespace_flexible": False})
