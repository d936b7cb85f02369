"""Greedy answers to many questions with a common beginning, which the model reads once."""

import functools
from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.policy.inference.decoders import common_prefix
from lakewright.policy.inference.json_schema import Matcher, Message, compile_schema, json_prompt, read_words
from lakewright.policy.inference.sampling import end_tokens
from lakewright.policy.inference.token_readers import CacheReader, write_tokens


class PrefixCache:
    """A model with the keys and values of the tokens that it read last.

    Args:
        model, tokenizer: the model.
        answer: most tokens of an answer in JSON.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, answer: int = 400) -> None:
        self._tokenizer, self._answer, self._reader = tokenizer, answer, CacheReader(model)
        self._ends = end_tokens(model, tokenizer)

    @functools.cached_property
    def _words(self) -> Any:
        """The vocabulary of the mask; a large one takes seconds to read."""
        return read_words(self._tokenizer)

    def weigh(self, messages: Sequence[Message], begun: str, choices: Sequence[str]) -> list[float]:
        """Return the log-probability of each choice as what follows the beginning of an answer.

        It is the one of the first token in which the choices differ, among these tokens.

        Args:
            messages: the question.
            begun: the beginning of the answer.
            choices: the ways on, all different.
        """
        prompt = [*json_prompt(self._tokenizer, messages), *self._encode(begun)]
        ways = [self._encode(choice) for choice in choices]
        shared = common_prefix(ways)
        logits = self._reader.read([*prompt, *ways[0][:shared]])
        return logits[[way[shared] for way in ways]].log_softmax(0).tolist()

    def write(self, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        """Return the greedy answer to a question, JSON of a schema, which is incomplete only if it is too long.

        Args:
            messages: the question.
            schema: the JSON's schema.

        Raises InputError if llguidance is missing or does not know the schema.
        """
        prompt = json_prompt(self._tokenizer, messages)
        matcher = Matcher(self._words, compile_schema(schema))
        answer = write_tokens(
            self._reader, prompt, matcher, lambda logits: int(matcher.mask(logits).argmax()), self._ends, self._answer
        )
        return str(self._tokenizer.decode(answer, skip_special_tokens=True))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids
