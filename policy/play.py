"""What is learned, as training and sampling see it: tasks, their prompts, their reference answers, and a judge.

`BoardPlay` plays boards of the lake, `TextPlay` problems that are asked and answered in text.
"""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from transformers import PreTrainedTokenizerFast

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Judged:
    """The verdicts on B answers.

    valid: bool [B]. rewards: float [B]. failures: the name of each failure, empty where the answer is valid. details:
    what else a log may hold of each answer.
    """

    valid: np.ndarray
    rewards: np.ndarray
    failures: Sequence[str]
    details: Sequence[Any]

    def select_rows(self, rows: slice) -> "Judged":
        """The verdicts on some of the answers."""
        return Judged(self.valid[rows], self.rewards[rows], self.failures[rows], self.details[rows])

    def append_verdicts(self, other: "Judged") -> "Judged":
        """These verdicts, and after them the others."""
        valid, rewards = np.append(self.valid, other.valid), np.append(self.rewards, other.rewards)
        return Judged(valid, rewards, [*self.failures, *other.failures], [*self.details, *other.details])


class TaskStream(abc.ABC, Generic[T]):
    """Tasks without end, in an order that is always the same. replaced: how many were put in place of excluded ones."""

    replaced: int = 0

    @abc.abstractmethod
    def take(self, count: int) -> list[T]:
        """The next tasks."""


class DrawnTasks(TaskStream[T]):
    """A stream from a function that draws tasks by their places: `draw(first, count)` gives the same ones each time.

    first: the place that it begins at; to go on with a training, the `boards` of its `kept_place`.
    """

    def __init__(self, draw: Callable[[int, int], Sequence[T]], first: int = 0) -> None:
        self._draw, self._next = draw, first

    def take(self, count: int) -> list[T]:
        """The next tasks."""
        tasks = list(self._draw(self._next, count))
        self._next += count
        return tasks


Tasks: TypeAlias = Sequence[T] | TaskStream[T]


class Play(Protocol[T]):
    """How tasks of one kind are asked, answered and judged, in token ids."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """That of the model."""
        ...

    @property
    def batch(self) -> int:
        """Answers decoded together."""
        ...

    @property
    def scored(self) -> bool:
        """Whether log-probabilities of sampled answers take little memory."""
        ...

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of all ways to fail."""
        ...

    @property
    def plural(self) -> str:
        """What tasks are called in messages."""
        ...

    def key(self, task: T) -> str:
        """What files call the task."""
        ...

    def encode_prompt(self, task: T) -> list[int]:
        """The prompt of a task. Raises InputError where there is none that the model could read."""
        ...

    def encode_reference(self, task: T) -> list[int]:
        """The reference answer, its end included."""
        ...

    def longest_answer(self, tasks: Tasks[T]) -> int:
        """The most tokens that an answer to one of them may have, its end included."""
        ...

    def judge(self, tasks: Sequence[T], answers: Sequence[list[int]]) -> Judged:
        """The verdict on each answer to its task."""
        ...

    def augment(self, task: T, rng: np.random.Generator) -> T:
        """A task that is alike by a symmetry, drawn at random; the task itself where there is none."""
        ...
