"""The protocol of learnable tasks, as training and sampling use it: prompts, reference answers, and a judge.

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

    Args:
        valid: bool [B].
        rewards: float [B].
        failures: the name of each failure, empty for a valid answer.
        details: anything else that a log may hold of each answer.
    """

    valid: np.ndarray
    rewards: np.ndarray
    failures: Sequence[str]
    details: Sequence[Any]

    def select_rows(self, rows: slice) -> "Judged":
        """Return the verdicts on some of the answers."""
        return Judged(self.valid[rows], self.rewards[rows], self.failures[rows], self.details[rows])

    def append_verdicts(self, other: "Judged") -> "Judged":
        """Return these verdicts followed by the others."""
        valid, rewards = np.append(self.valid, other.valid), np.append(self.rewards, other.rewards)
        return Judged(valid, rewards, [*self.failures, *other.failures], [*self.details, *other.details])


class TaskStream(abc.ABC, Generic[T]):
    """An endless sequence of tasks in a fixed order.

    `replaced` counts the tasks that took the place of excluded ones. `taken` has the tasks so far, if recorded.
    """

    replaced: int = 0
    taken: list[T]

    @abc.abstractmethod
    def take(self, count: int) -> list[T]:
        """Return the next tasks."""


class DrawnTasks(TaskStream[T]):
    """A stream from a function that draws tasks by their places: `draw(first, count)` gives the same ones each time.

    `first` is the place at which the stream begins; to resume a training, it is `boards` of its `load_place`. With
    `recorded`, all tasks are collected in `taken`.
    """

    def __init__(self, draw: Callable[[int, int], Sequence[T]], first: int = 0, recorded: bool = False) -> None:
        self._draw, self._next, self._recorded, self.taken = draw, first, recorded, list[T]()

    def take(self, count: int) -> list[T]:
        """Return the next tasks."""
        tasks = list(self._draw(self._next, count))
        self._next += count
        self.taken += tasks if self._recorded else []
        return tasks


Tasks: TypeAlias = Sequence[T] | TaskStream[T]


class Play(Protocol[T]):
    """A way to ask, answer and judge tasks of one kind, in token ids."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer of the model."""
        ...

    @property
    def batch(self) -> int:
        """The number of answers decoded together; 0: see `lakewright.policy.inference.device_limits.fit_answers`."""
        ...

    @property
    def scored(self) -> bool:
        """True if the log-probabilities of sampled answers take little memory."""
        ...

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of all failures."""
        ...

    @property
    def plural(self) -> str:
        """The name of several tasks in messages."""
        ...

    def key(self, task: T) -> str:
        """Return the name of the task in files."""
        ...

    def encode_prompt(self, task: T) -> list[int]:
        """Return the prompt of a task. Raises InputError if the model could not read it."""
        ...

    def encode_reference(self, task: T) -> list[int]:
        """Return the reference answer, its end included."""
        ...

    def longest_answer(self, tasks: Tasks[T]) -> int:
        """Return the most tokens that an answer to one of them may have, its end included."""
        ...

    def judge(self, tasks: Sequence[T], answers: Sequence[list[int]]) -> Judged:
        """Return the verdict on each answer to its task."""
        ...

    def augment(self, task: T, rng: np.random.Generator) -> T:
        """Return a task that is equal by a symmetry, drawn at random, or the task itself if unknown."""
        ...
