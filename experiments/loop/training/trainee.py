"""The `Trainee`: the policy of a run as the loop sees it, for the lake and for environments whose problems are text."""

import abc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Generic, TypeVar

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import Group
from lakewright.engineer.cells import Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.evidence import vocabulary_of
from lakewright.engineer.guard import check_floor
from lakewright.engineer.tally import Drawn
from lakewright.engineer.teachers import check_teacher
from lakewright.experiments.loop.records import RunFolder, Stage
from lakewright.experiments.loop.settings import RunSettings
from lakewright.experiments.loop.training.policies import load_policy
from lakewright.policy.play import Play, Tasks
from lakewright.policy.training import Answered, roll_out

T = TypeVar("T")


class Trainee(abc.ABC, Generic[T]):
    """What a run trains, and what its problems are to a policy, tasks of type T.

    environment: draws problems, and says what may be changed. start: the design of the first stage. answers,
    references: what answers and reference answers are called. lake: whether its records have the lake's own form.
    """

    environment: Environment
    start: Design
    answers: str
    references: str
    lake: bool

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens in which a small model answers as the engineer."""
        return vocabulary_of(self.environment.space).tokens

    @abc.abstractmethod
    def problems_file(self, stage: Stage) -> Path:
        """The file of a stage's problems."""

    @abc.abstractmethod
    def hold_out(self, folder: RunFolder) -> list[Problem]:
        """The held-out problems of a run, drawn once and kept in its folder."""

    @abc.abstractmethod
    def count_held_out(self) -> int:
        """How many problems are held out, about."""

    @abc.abstractmethod
    def draw(
        self, design: Design, count: int, seed: int, first: int, on_progress: Callable[[int], object]
    ) -> tuple[list[Problem], Sequence[Any]]:
        """The problems first .. first + count - 1 of a design and a seed, and how often attempts at them met."""

    @abc.abstractmethod
    def count_problems(self, problems: Sequence[Problem], acceptance: Sequence[Any]) -> dict[Stratum, Drawn]:
        """What was really drawn, by stratum."""

    @abc.abstractmethod
    def make_task(self, problem: Problem) -> T:
        """A problem as a task of the policy."""

    @abc.abstractmethod
    def build(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        """A model of random weights."""

    @abc.abstractmethod
    def play(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Play[T]:
        """How a model is asked and judged."""

    @abc.abstractmethod
    def check_start(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, held_out: Sequence[Problem]
    ) -> None:
        """Raises InputError where the model to begin with cannot answer."""

    @abc.abstractmethod
    def stream_references(self, warmup: Stage, first: int) -> AbstractContextManager[Tasks[T]]:
        """The tasks of the warm-up, from the place `first` in their stream."""

    @abc.abstractmethod
    def stream_problems(self, stage: Stage, number: int) -> AbstractContextManager[Tasks[T]]:
        """Tasks that are drawn while a stage is trained."""

    @abc.abstractmethod
    def keep_problems(self, stage: Stage, tasks: Tasks[T]) -> None:
        """Keeps the problems that were drawn while a stage was trained, and their statistics."""

    @abc.abstractmethod
    def validate(self, stage: Stage, held_out: Sequence[Problem]) -> None:
        """Answers the held-out problems with the policy of a stage, and keeps answers and outcomes."""

    @abc.abstractmethod
    def describe_answers(self, answered: Answered, play: Play[T]) -> dict[str, Any]:
        """A group of answers as a line of rollouts.jsonl."""

    def roll_out(
        self,
        checkpoint: Path,
        problems: Sequence[Problem],
        samples: int,
        seed: int,
        on_progress: Callable[[int], None],
    ) -> tuple[list[Group], int]:
        """`samples` answers of a checkpoint to each problem: a group for each, and the tokens generated.

        checkpoint: the policy. problems, samples: what is asked, how often. seed: of the sampling. on_progress: gets
        how many more answers there are.
        """
        model, tokenizer = load_policy(self.settings, checkpoint)
        return roll_out(
            model,
            self.play(model, tokenizer),
            list(map(self.make_task, problems)),
            samples,
            temperature=self.settings.grpo.temperature,
            seed=seed,
            on_progress=on_progress,
        )


def check_settings(settings: RunSettings, environment: Environment, start: Design) -> None:
    """Raises InputError where settings do not suit an environment."""
    check_floor(settings.limits.floor, len(start.strata), environment.space)
    check_teacher(settings.teacher, settings.teacher_options, environment.space)
    known = [column.name for column in environment.space.columns]
    for name in (*settings.limits.reach, *settings.limits.most):
        if name not in known:
            raise InputError(f"guard: {name!r:.60} is no knob; choose from {', '.join(known)}")
