"""JSON answers under a schema from a model in this process: free reasoning first, then only legal tokens.

`PrefixCache` answers many questions with a common beginning, which the model reads once.
"""

import functools
import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
import numpy as np
import torch
from transformers import LogitsProcessor, PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.policy.codecs.thought_marks import THINK, ThoughtMarks
from lakewright.policy.inference.decoders import common_prefix
from lakewright.policy.inference.grammar import Grammar
from lakewright.policy.inference.sampling import choose_tokens, end_tokens, sample
from lakewright.policy.inference.token_readers import CacheReader, TokenReader, make_reader, write_tokens

Message = dict[str, str]  # role and content, as chat templates and servers take them
ANSWER = "\nANSWER:\n"  # between reasoning and JSON
MISSING = "llguidance is missing; install lakewright[structured]"


class SchemaSettings(msgspec.Struct, frozen=True):
    """Lengths and temperature of answers in JSON.

    Args:
        reasoning: most tokens of free reasoning before the JSON; 0 omits it.
        answer: most tokens of the JSON.
        temperature: sampling temperature; 0 is greedy.
    """

    reasoning: int
    answer: int
    temperature: float


def answer_in_json(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    schema: dict[str, Any],
    settings: SchemaSettings,
    seed: int,
    reader: TokenReader | None = None,
) -> tuple[str, int]:
    """Return the model's reasoning, ANSWER, and JSON of the schema; and the number of tokens generated.

    The JSON is decoded under a mask of llguidance and can only be incomplete, if `settings.answer` cuts it off.

    Args:
        model, tokenizer: the policy.
        messages: the question.
        schema: the JSON's schema.
        settings: lengths and temperature.
        seed: seed for sampling.
        reader: reads for the model; the reader of an earlier answer to the question has read it.

    Raises InputError if llguidance is missing or does not know the schema.
    """
    prompt, ends, thoughts = _encode_prompt(tokenizer, messages), end_tokens(model, tokenizer), ThoughtMarks(tokenizer)
    reader = reader or make_reader(model, settings.reasoning + settings.answer)

    def choose(logits: torch.Tensor) -> int:
        return int(choose_tokens(logits[None], settings.temperature, scored=False)[0])

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        thought: list[int] = []
        while len(thought) < settings.reasoning and not thoughts.has_ended(thought):
            token = choose(reader.read([*prompt, *thought]))
            if token in ends:
                break
            thought.append(token)
        reasoning = "".join(thoughts.split(prompt, thought)) + ANSWER
        begun = [*prompt, *_encode_text(tokenizer, reasoning)]
        matcher = Matcher(read_words(tokenizer), compile_schema(schema))
        answer = write_tokens(
            reader, begun, matcher, lambda logits: choose(matcher.mask(logits)), ends, settings.answer
        )
    text = thoughts.rewrite(reasoning) + _decode_text(tokenizer, answer)
    return text, len(thought) + len(answer)


def sample_in_json(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    schema: dict[str, Any] | None,
    settings: SchemaSettings,
    copies: int,
    seed: int,
) -> list[str]:
    """Return several answers to one question, sampled together: JSON under the mask at once, or free text.

    Args:
        model, tokenizer: the policy.
        messages: the question.
        schema: the JSON's schema; None for free text.
        settings: lengths and temperature.
        copies: how many answers.
        seed: seed for sampling.

    Raises InputError as `answer_in_json`.
    """
    prompt, thoughts = _encode_prompt(tokenizer, messages), ThoughtMarks(tokenizer)
    if schema:
        found = sample_json_ids(model, tokenizer, json_prompt(tokenizer, messages), schema, settings, copies, seed)
        return [_decode_text(tokenizer, ids) for ids in found]
    begun = THINK * bool(thoughts.find_begun(prompt))
    free = sample_json_ids(model, tokenizer, prompt, None, settings, copies, seed)
    return [begun + thoughts.decode(ids) for ids in free]


def json_prompt(tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message]) -> list[int]:
    """Return the ids of a question after which JSON follows at once, without a thought."""
    prompt = _encode_prompt(tokenizer, messages)
    return [*prompt, *_encode_text(tokenizer, ThoughtMarks(tokenizer).split(prompt, [])[1] + ANSWER)]


def sample_json_ids(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompt: list[int],
    schema: dict[str, Any] | None,
    settings: SchemaSettings,
    copies: int,
    seed: int,
) -> list[list[int]]:
    """Return the answers to a prompt of `json_prompt`, as `sample_in_json`, in token ids without an end token.

    Args:
        model, tokenizer: the policy.
        prompt: token ids.
        schema, settings, copies, seed: see `sample_in_json`.
    """
    mask = SchemaMask(tokenizer, schema, 0, copies) if schema else None
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found = sample(
            model,
            tokenizer,
            [prompt],
            copies=copies,
            batch=copies,
            max_new_tokens=settings.answer,
            temperature=settings.temperature,
            scored=False,
            mask=mask,
        )
    ends = end_tokens(model, tokenizer)
    return [answer[:-1] if answer[-1:] and answer[-1] in ends else answer for answer in found.answers]


def schema_grammar(tokenizer: PreTrainedTokenizerFast, schema: dict[str, Any]) -> Grammar:
    """Return the grammar of JSON of a schema. Raises InputError as `answer_in_json`."""
    words, grammar = read_words(tokenizer), compile_schema(schema)

    def open_to(answer: Sequence[int]) -> Iterator[np.ndarray]:
        matcher = Matcher(words, grammar)
        for token in answer:
            yield np.flatnonzero(matcher.allowed_tokens())
            matcher.take_token(token)

    return open_to


class SchemaMask(LogitsProcessor):
    """A mask of the tokens that cannot continue JSON of a schema.

    Args:
        tokenizer: the model's tokenizer.
        schema: the JSON's schema.
        prompt: the number of tokens before the JSON, the same for all rows.
        rows: answers that are decoded together.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, schema: dict[str, Any], prompt: int, rows: int = 1) -> None:
        words, grammar = read_words(tokenizer), compile_schema(schema)
        self._matchers = [Matcher(words, grammar) for _ in range(rows)]
        self._seen = prompt

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores [B, V] after the tokens [B, T]: minus infinity for tokens that may not follow."""
        for matcher, row in zip(self._matchers, input_ids[:, self._seen :].tolist(), strict=True):
            for token in row:
                matcher.take_token(token)
        self._seen = input_ids.shape[1]
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


def _encode_prompt(tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message]) -> list[int]:
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return _encode_text(tokenizer, cast(str, text))
    begin = [tokenizer.bos_token_id] if _begins_texts(tokenizer) else []  # a template has its own
    return [*begin, *_encode_text(tokenizer, "\n\n".join(message["content"] for message in messages) + "\n\n")]


def _begins_texts(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Return True if a tokenizer begins texts with a token of its own, without which its model is lost."""
    return tokenizer.bos_token_id is not None and tokenizer("a")["input_ids"][0] == tokenizer.bos_token_id


def _decode_text(tokenizer: PreTrainedTokenizerFast, ids: list[int]) -> str:
    return cast(str, tokenizer.decode(ids, skip_special_tokens=True))


def _encode_text(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


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
        """Return the log-probability of each choice as the continuation of an answer.

        It is the one of the first token in which the choices differ, among these tokens.

        Args:
            messages: the question.
            begun: the beginning of the answer.
            choices: the continuations, all different.
        """
        prompt = [*json_prompt(self._tokenizer, messages), *_encode_text(self._tokenizer, begun)]
        ways = [_encode_text(self._tokenizer, choice) for choice in choices]
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
        return _decode_text(self._tokenizer, answer)
