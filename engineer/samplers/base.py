"""The `Sampler` protocol, and the sampler that trains on whatever the design draws."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from lakewright.core_jax.results import RolloutGroup
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem
from lakewright.engineer.proposal import Stateful
from lakewright.engineer.random_generators import Key

Rollout: TypeAlias = tuple[Problem, RolloutGroup]
"""A problem and a group of answers to it."""

MOST_TURNS = 64  # of each kind, so that a search always ends soon

ScoreProblems: TypeAlias = Callable[[list[Problem]], list[Rollout]]
"""Rolls the current policy out on problems and charges the budget. Returns each problem with its group, in order: all
problems, or the first that the budget allows.
"""


class Fresh(Protocol):
    """Draws problems that are new: from the stage's `design`, or from another.

    forecast: the difficulty model's when the design was decided; None if it was decided without one.
    """

    design: Design
    environment: Environment
    forecast: Forecast | None

    def __call__(self, count: int, design: Design | None = None) -> list[Problem]:
        """The next `count` problems."""

    def find_cell(self, index: int, turn: int) -> Cell:
        """The cell, with its givens, from which `draw_again` draws."""

    def draw_again(self, index: int, turn: int) -> Problem:
        """Another problem of the same stratum for a problem that was drawn of the design.

        index: index of that problem, from 0. turn: from 1; each turn has another problem, always the same. Turns after
        MOST_TURNS have problems with the traits of that problem.
        """


class Sampled(msgspec.Struct, frozen=True):
    """The problems of a stage; how many were newly drawn for them, rolled out on, and used again.

    turns: from a sampler that keeps the shares, the turn of `draw_again` in each place, 0 for the first problem.
    barren: places whose problems all had answers with equal rewards.
    """

    problems: list[Problem]
    fresh: int
    scored: int = 0
    replayed: int = 0
    turns: list[int] = []
    barren: list[int] = []


class Sampler(Protocol):
    """Chooses the problems of a stage, if they are drawn; learns from the stage's training rollouts on them.

    A class with `keeps_shares = True` gives each problem's place to it or to another of its stratum, and says in
    `Sampled.turns` which. With `rolls_out = True` it asks for scores.
    """

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """Problems to train on; the state doesn't change.

        Args:
            count: how many problems.
            fresh: draws new problems.
            score: rolls the policy out on problems.
            key: the only source of randomness, consumed.
        """

    def learn(self, rollouts: Sequence[Rollout], stage: int, environment: Environment) -> None:
        """Notes the training rollouts on the problems of a stage, from 0."""

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run must restore, as JSON values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` gave."""


class MemorylessSampler(Stateful):
    """A sampler that learns nothing from a stage's rollouts."""

    keeps_shares: ClassVar[bool] = False
    rolls_out: ClassVar[bool] = False

    def learn(self, rollouts: Sequence[Rollout], stage: int, environment: Environment) -> None:
        """Nothing to note."""


class FreshSampler(MemorylessSampler):
    """Every problem is new."""

    keeps_shares: ClassVar[bool] = True

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """`count` fresh problems."""
        return Sampled(fresh(count), count, turns=[0] * count)
