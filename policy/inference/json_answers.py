"""JSON answers under a schema: free reasoning first, then only legal tokens.

`PrefixCache` answers many questions with a common beginning, which the model reads once.
"""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.policy.codecs.thought_marks import THINK, ThoughtMarks
from lakewright.policy.inference.answers import AnswerWriter, ModelAnswers
from lakewright.policy.inference.decoders import common_prefix
from lakewright.policy.inference.token_readers import CacheReader

Message = dict[str, str]  # role and content, as chat templates and servers take them
ANSWER = "\nANSWER:\n"  # between reasoning and JSON


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
    policy: PreTrainedModel | AnswerWriter,
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    schema: dict[str, Any],
    settings: SchemaSettings,
    seed: int,
) -> tuple[str, int]:
    """Return the model's reasoning, ANSWER, and JSON of the schema; and the number of tokens generated.

    The JSON is decoded under a mask of llguidance and can only be incomplete, if `settings.answer` cuts it off.

    Args:
        policy: the model, or what answers for it; a `ModelAnswers` reads a question once for several answers.
        tokenizer: the policy's.
        messages: the question.
        schema: the JSON's schema.
        settings: lengths and temperature.
        seed: seed for sampling.

    Raises InputError if llguidance is missing or does not know the schema.
    """
    writer = _find_writer(policy, tokenizer)
    prompt, thoughts = _encode_prompt(tokenizer, messages), ThoughtMarks(tokenizer)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        thought = writer.write(
            prompt, max_new_tokens=settings.reasoning, temperature=settings.temperature, stop=thoughts.has_ended
        )
        reasoning = "".join(thoughts.split(prompt, thought)) + ANSWER
        begun = [*prompt, *_encode_text(tokenizer, reasoning)]
        answer = writer.write(begun, max_new_tokens=settings.answer, temperature=settings.temperature, schema=schema)
    text = thoughts.rewrite(reasoning) + _decode_text(tokenizer, answer)
    return text, len(thought) + len(answer)


def sample_in_json(
    policy: PreTrainedModel | AnswerWriter,
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    schema: dict[str, Any] | None,
    settings: SchemaSettings,
    copies: int,
    seed: int,
) -> list[str]:
    """Return several answers to one question, sampled together: JSON under the mask at once, or free text.

    Args:
        policy, tokenizer: see `answer_in_json`.
        messages: the question.
        schema: the JSON's schema; None for free text.
        settings: lengths and temperature.
        copies: how many answers.
        seed: seed for sampling.

    Raises InputError as `answer_in_json`.
    """
    prompt, thoughts = _encode_prompt(tokenizer, messages), ThoughtMarks(tokenizer)
    if schema:
        found = sample_json_ids(policy, tokenizer, json_prompt(tokenizer, messages), schema, settings, copies, seed)
        return [_decode_text(tokenizer, ids) for ids in found]
    begun = THINK * bool(thoughts.find_begun(prompt))
    free = sample_json_ids(policy, tokenizer, prompt, None, settings, copies, seed)
    return [begun + thoughts.decode(ids) for ids in free]


def json_prompt(tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message]) -> list[int]:
    """Return the ids of a question after which JSON follows at once, without a thought."""
    prompt = _encode_prompt(tokenizer, messages)
    return [*prompt, *_encode_text(tokenizer, ThoughtMarks(tokenizer).split(prompt, [])[1] + ANSWER)]


def sample_json_ids(
    policy: PreTrainedModel | AnswerWriter,
    tokenizer: PreTrainedTokenizerFast,
    prompt: list[int],
    schema: dict[str, Any] | None,
    settings: SchemaSettings,
    copies: int,
    seed: int,
) -> list[list[int]]:
    """Return the answers to a prompt of `json_prompt`, as `sample_in_json`, in token ids without an end token.

    Args:
        policy, tokenizer: see `answer_in_json`.
        prompt: token ids.
        schema, settings, copies, seed: see `sample_in_json`.
    """
    writer = _find_writer(policy, tokenizer, copies)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found = writer.sample(
            [prompt],
            copies=copies,
            max_new_tokens=settings.answer,
            temperature=settings.temperature,
            scored=False,
            schema=schema,
        )
    return [answer[:-1] if answer[-1:] and answer[-1] in writer.ends else answer for answer in found.answers]


def _find_writer(
    policy: PreTrainedModel | AnswerWriter, tokenizer: PreTrainedTokenizerFast, batch: int = 1
) -> AnswerWriter:
    return policy if isinstance(policy, AnswerWriter) else ModelAnswers(policy, tokenizer, batch)


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
    """A policy whose model has the keys and values of the tokens that it read last.

    Args:
        policy, tokenizer: the model, or what answers for it.
        answer: most tokens of an answer in JSON.
    """

    def __init__(
        self, policy: PreTrainedModel | AnswerWriter, tokenizer: PreTrainedTokenizerFast, answer: int = 400
    ) -> None:
        if not isinstance(policy, AnswerWriter):
            policy = ModelAnswers(policy, tokenizer, reader=CacheReader(policy))
        self._writer, self._tokenizer, self._answer = policy, tokenizer, answer

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
        return self._writer.weigh([*prompt, *ways[0][:shared]], [way[shared] for way in ways])

    def write(self, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        """Return the greedy answer to a question, JSON of a schema, which is incomplete only if it is too long.

        Args:
            messages: the question.
            schema: the JSON's schema.

        Raises InputError if llguidance is missing or does not know the schema.
        """
        prompt = json_prompt(self._tokenizer, messages)
        answer = self._writer.write(prompt, max_new_tokens=self._answer, temperature=0.0, schema=schema)
        return _decode_text(self._tokenizer, answer)
