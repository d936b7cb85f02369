"""What a sampler is."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.results import Group
from lakewright.core_jax.rows import Row
from lakewright.engineer.random_generators import Key

Rollout: TypeAlias = tuple[Row, Group]
"""A board and a group of answers to it."""

Score: TypeAlias = Callable[[list[Row]], list[Rollout]]
"""Rolls the present policy out on boards, which is charged to the budget: each board with its group, in their order, of
all of them or of the first, as many as the budget allows.
"""


class Fresh(Protocol):
    """Draws boards that are new: from the stage's `config`, or from another."""

    config: EnvConfig

    def __call__(self, count: int, config: EnvConfig | None = None) -> list[Row]:
        """The next `count` boards."""


class Drawn(msgspec.Struct, frozen=True):
    """The boards of a stage; how many boards were newly drawn for them, rolled out on, and used again."""

    rows: list[Row]
    fresh: int
    scored: int = 0
    replayed: int = 0


class Sampler(Protocol):
    """Chooses the boards of a stage, where they are drawn; learns from the stage's training rollouts on them."""

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Drawn:
        """`count` boards to train on. Leaves the state as it is. All chance comes from `key`, consumed."""

    def learn(self, rollouts: Sequence[Rollout], stage: int) -> None:
        """Notes the training rollouts on the boards of a stage, from 0."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must restore, as JSON values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` gave."""
