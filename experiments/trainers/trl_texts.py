"""Texts of TRL: the rows of its data sets on the problems of an engineer's folder, and what a policy said."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lakewright.core_jax.support import read_last_words, strip_thoughts
from lakewright.engineer.problems import Problem
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.trl_episodes import Prompt

Completion = str | list[dict[str, Any]]


class RowMaker(NamedTuple):
    """Makes rows of the data set from their places. Data loading workers get it, and no trainer with it.

    source: has the problems. chat: whether a prompt is a message.
    """

    source: ProblemSource
    chat: bool

    def __call__(self, rows: dict[str, list[int]]) -> dict[str, list[Any]]:
        """The rows of some places, each of the design of when it is first asked for."""
        return describe_rows(self.source.problems(rows["place"]), rows["place"], "train", chat=self.chat)


def describe_rows(problems: list[Problem], places: list[int], split: str, *, chat: bool) -> dict[str, list[Any]]:
    """The rows of problems.

    Args:
        problems: the problems.
        places: their places.
        split: `train` or `held_out`.
        chat: whether a prompt is a message.
    """
    prompts = [write_prompt(problem.prompt, chat=chat) for problem in problems]
    return {"prompt": prompts, "place": list(places), "split": [split] * len(places)}


def write_prompt(text: str, *, chat: bool) -> Prompt:
    """A prompt as the trainer takes it: text, or a message to a chat model."""
    return [{"role": "user", "content": text}] if chat else text


def read_completion_text(completion: Completion, ids: Sequence[int] = (), processor: Any = None) -> str:
    """The text of a completion, or of the last message of the model in one.

    Args:
        completion: as TRL gives it, without special tokens.
        ids: its tokens.
        processor: the trainer's processor. If marks of thoughts are special tokens, a turn is decoded again with them.
    """
    tokenizer = getattr(processor, "tokenizer", processor)
    special = getattr(tokenizer, "all_special_tokens", [])
    one_turn = isinstance(completion, str) or len(completion) == 1
    if not (one_turn and any(strip_thoughts(f"{token}0") != f"{token}0" for token in special)):
        return read_last_words(completion)
    text = str(tokenizer.decode(ids, skip_special_tokens=False))
    for token in (tokenizer.eos_token, tokenizer.pad_token, tokenizer.bos_token):
        text = text.replace(token or "\0", "")
    return text
