"""The sampler that trains on whatever the config draws."""

from collections.abc import Sequence
from typing import Any

from engineer.random_generators import Key
from engineer.samplers.base import Drawn, Fresh, Rollout, Score


class Unscored:
    """What a sampler without memory shares with others of its kind."""

    def learn(self, rollouts: Sequence[Rollout], stage: int) -> None:
        """Nothing to note."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""


class FreshSampler(Unscored):
    """Every board is new."""

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Drawn:
        """`count` fresh boards."""
        return Drawn(fresh(count), count)
