"""Greedy answers to many questions with a common beginning, which the model reads once."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerFast

from lakewright.policy.inference.decoders import common_prefix
from lakewright.policy.inference.json_schema import Matcher, Message, compile_schema, json_prompt, read_words
from lakewright.policy.inference.sampling import end_tokens
from lakewright.policy.models.building import set_mode, use_precision


class PrefixCache:
    """A model with the keys and values of the tokens that it read last.

    Args:
        model, tokenizer: the model.
        answer: most tokens of an answer in JSON.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, answer: int = 400) -> None:
        self._model, self._tokenizer, self._answer = model, tokenizer, answer
        self._ids: list[int] = []
        self._cache = DynamicCache()  # of all tokens, also where a layer attends to the last ones alone
        self._ends = end_tokens(model, tokenizer)

    @functools.cached_property
    def _words(self) -> Any:
        """The vocabulary of the mask; a large one takes seconds to read."""
        return read_words(self._tokenizer)

    def weigh(self, messages: Sequence[Message], begun: str, choices: Sequence[str]) -> list[float]:
        """Return the log-probability of each choice as what follows the beginning of an answer.

        It is that of the first token in which the choices differ, among these tokens.

        Args:
            messages: the question.
            begun: the beginning of the answer.
            choices: the ways on, all different.
        """
        prompt = [*json_prompt(self._tokenizer, messages), *self._encode(begun)]
        ways = [self._encode(choice) for choice in choices]
        shared = common_prefix(ways)
        logits = self._read([*prompt, *ways[0][:shared]])
        return logits[[way[shared] for way in ways]].log_softmax(0).tolist()

    def write(self, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        """Return the greedy answer to a question, JSON of a schema, which is incomplete only if it is too long.

        Args:
            messages: the question.
            schema: of the JSON.

        Raises InputError if llguidance is missing or does not know the schema.
        """
        prompt = json_prompt(self._tokenizer, messages)
        matcher, answer = Matcher(self._words, compile_schema(schema)), list[int]()
        while len(answer) < self._answer and not matcher.ended:
            chosen = matcher.forced_tokens() or [self._choose(prompt + answer, matcher)]
            if chosen[0] in self._ends:
                break
            for token in chosen:
                matcher.take_token(token)
            answer += chosen
        return str(self._tokenizer.decode(answer, skip_special_tokens=True))

    def _choose(self, ids: list[int], matcher: Matcher) -> int:
        logits = self._read(ids)
        allowed = torch.from_numpy(matcher.allowed_tokens()[: len(logits)])
        return int(logits.masked_fill(~allowed, -torch.inf).argmax())

    @torch.inference_mode()
    def _read(self, ids: list[int]) -> torch.Tensor:
        """Return the logits float32 [V] of what follows some tokens."""
        known = common_prefix([self._ids, ids]) if self._ids else 0
        if (more := self._cache.get_seq_length() - known) > 0:
            self._cache.crop(-more)
        with set_mode(self._model), use_precision(self._model):
            rest = torch.tensor([ids[known:]], device=self._model.device)
            output = self._model(input_ids=rest, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        self._ids = list(ids)
        return output.logits[0, -1].float().cpu()

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids
