"""The `Sampler` protocol, and the sampler that trains on whatever the design draws."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from lakewright.core_jax.results import Group
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.proposal import Stateful
from lakewright.engineer.random_generators import Key

Rollout: TypeAlias = tuple[Problem, Group]
"""A problem and a group of answers to it."""

Score: TypeAlias = Callable[[list[Problem]], list[Rollout]]
"""Rolls the present policy out on problems, which is charged to the budget: each problem with its group, in their
order, of all of them or of the first, as many as the budget allows.
"""


class Fresh(Protocol):
    """Draws problems that are new: from the stage's `design`, or from another."""

    design: Design
    environment: Environment

    def __call__(self, count: int, design: Design | None = None) -> list[Problem]:
        """The next `count` problems."""


class Sampled(msgspec.Struct, frozen=True):
    """The problems of a stage; how many were newly drawn for them, rolled out on, and used again."""

    problems: list[Problem]
    fresh: int
    scored: int = 0
    replayed: int = 0


class Sampler(Protocol):
    """Chooses the problems of a stage, if they are drawn; learns from the stage's training rollouts on them."""

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Sampled:
        """Problems to train on; the state does not change.

        Args:
            count: how many.
            fresh: draws new problems.
            score: rolls the policy out on problems.
            key: the only source of chance, consumed.
        """

    def learn(self, rollouts: Sequence[Rollout], stage: int, environment: Environment) -> None:
        """Notes the training rollouts on the problems of a stage, from 0."""

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run must restore, as JSON values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` gave."""


class MemorylessSampler(Stateful):
    """A sampler that learns nothing from a stage's rollouts."""

    def learn(self, rollouts: Sequence[Rollout], stage: int, environment: Environment) -> None:
        """Nothing to note."""


class FreshSampler(MemorylessSampler):
    """Every problem is new."""

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Sampled:
        """`count` fresh problems."""
        return Sampled(fresh(count), count)
