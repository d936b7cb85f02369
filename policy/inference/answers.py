"""One interface for the answers of a policy, whatever decodes them: this package's decoders or vLLM.

    writer = ModelAnswers(model, tokenizer)      # or `VllmAnswers`
    writer.sample(prompts, copies=8, max_new_tokens=64, temperature=1.0).answers

Chance comes from torch's own generator: seed it to get the same answers again.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.policy.inference.json_schema import Matcher, SchemaMask, compile_schema, read_words
from lakewright.policy.inference.sampling import ROWS, Samples, choose_tokens, end_tokens, sample
from lakewright.policy.inference.token_readers import TokenReader, make_reader, write_tokens
from lakewright.policy.play import Play

LONGEST = 1 << 14  # tokens of an answer that is written at once; a longer one takes memory in smaller steps

T = TypeVar("T")


@runtime_checkable
class AnswerSampler(Protocol):
    """Samples many answers."""

    def sample(
        self,
        prompts: list[list[int]],
        *,
        copies: int = 1,
        max_new_tokens: int,
        temperature: float,
        scored: bool = True,
        schema: dict[str, Any] | None = None,
        on_progress: Callable[[int], None] = lambda prompts: None,
    ) -> Samples:
        """Return answers to prompts, those to one prompt next to each other, each with its end token.

        Args:
            prompts: token ids; a single prompt if there is a schema.
            copies: answers to each prompt.
            max_new_tokens: most tokens of an answer.
            temperature: sampling temperature; 0 is greedy.
            scored: return log-probabilities too.
            schema: a JSON schema that the answers must fit.
            on_progress: gets how many more prompts are answered, now and then 0 of them.

        Raises InputError if the schema cannot be used, or if the decoder refuses its input.
        """
        ...


@runtime_checkable
class AnswerWriter(AnswerSampler, Protocol):
    """Samples answers, and writes single answers in parts, so that no token is read twice.

    Args:
        tokenizer: the policy's.
        ends: the tokens that end an answer.
    """

    tokenizer: PreTrainedTokenizerFast
    ends: list[int]

    def write(
        self,
        prompt: list[int],
        *,
        max_new_tokens: int,
        temperature: float,
        schema: dict[str, Any] | None = None,
        stop: Callable[[list[int]], bool] = lambda said: False,
    ) -> list[int]:
        """Return one answer without an end token.

        Args:
            prompt: token ids, with an earlier part of the answer if there is one.
            max_new_tokens, temperature, schema: see `AnswerSampler.sample`.
            stop: returns True if the answer so far is to be the whole answer.

        Raises InputError as `AnswerSampler.sample`.
        """
        ...

    def weigh(self, prompt: list[int], tokens: Sequence[int]) -> list[float]:
        """Return the log-probability of each of some tokens as the next one after a prompt, among these tokens."""
        ...


class ModelAnswers:
    """The answers of a model in this process.

    Args:
        model, tokenizer: the policy.
        batch: most answers that are sampled together; 0: see `fit_answers`.
        reader: reads for `write` and `weigh`; by default the faster one for several answers to one question.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        batch: int = ROWS,
        reader: TokenReader | None = None,
    ) -> None:
        self.model, self.tokenizer, self.ends = model, tokenizer, end_tokens(model, tokenizer)
        self._batch, self._reader = batch, reader

    @functools.cached_property
    def _words(self) -> Any:
        """The vocabulary of masks; a large one takes seconds to read."""
        return read_words(self.tokenizer)

    def sample(
        self, prompts: list[list[int]], *, copies: int = 1, schema: dict[str, Any] | None = None, **how: Any
    ) -> Samples:
        """See `AnswerSampler`."""
        mask = SchemaMask(self._words, schema, copies) if schema else None
        batch = copies if schema else self._batch
        return sample(self.model, self.tokenizer, prompts, copies=copies, batch=batch, mask=mask, **how)

    def write(
        self,
        prompt: list[int],
        *,
        max_new_tokens: int,
        temperature: float,
        schema: dict[str, Any] | None = None,
        stop: Callable[[list[int]], bool] = lambda said: False,
    ) -> list[int]:
        """See `AnswerWriter`."""
        self._reader = self._reader or make_reader(self.model, LONGEST)
        matcher = Matcher(self._words, compile_schema(schema)) if schema else None

        def choose(logits: torch.Tensor) -> int:
            open_ = matcher.mask(logits) if matcher else logits
            return int(choose_tokens(open_[None], temperature, scored=False)[0])

        return write_tokens(self._reader, prompt, matcher, choose, self.ends, max_new_tokens, stop)

    def weigh(self, prompt: list[int], tokens: Sequence[int]) -> list[float]:
        """See `AnswerWriter`."""
        self._reader = self._reader or make_reader(self.model, LONGEST)
        return self._reader.read(prompt)[list(tokens)].log_softmax(0).tolist()


def find_answers(
    policy: PreTrainedModel | AnswerSampler, tokenizer: PreTrainedTokenizerFast, batch: int = ROWS
) -> AnswerSampler:
    """Return what answers for a policy: itself, if it can, or the decoders of this package for a model.

    Args:
        policy: a model, or what answers for one.
        tokenizer, batch: see `ModelAnswers`.
    """
    return policy if isinstance(policy, AnswerSampler) else ModelAnswers(policy, tokenizer, batch)


def answer_tasks(
    policy: PreTrainedModel | AnswerSampler,
    play: Play[T],
    tasks: Sequence[T],
    *,
    temperature: float = 0.0,
    on_progress: Callable[[int], None] = lambda tasks: None,
) -> list[list[int]]:
    """Return one answer (token ids after the prompt) for each task.

    Args:
        policy: the model, or what answers for it.
        play, tasks: the kind of tasks, and the tasks.
        temperature: sampling temperature; 0 is greedy.
        on_progress: gets how many more tasks are answered.

    Raises InputError as `play` does.
    """
    return (
        find_answers(policy, play.tokenizer, play.batch)
        .sample(
            [play.encode_prompt(task) for task in tasks],
            max_new_tokens=play.longest_answer(tasks),
            temperature=temperature,
            scored=play.scored,
            on_progress=on_progress,
        )
        .answers
    )
