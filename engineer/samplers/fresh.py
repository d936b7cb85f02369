"""The sampler that trains on whatever the config draws."""

from collections.abc import Sequence

from lakewright.engineer.proposal import Stateless
from lakewright.engineer.random_generators import Key
from lakewright.engineer.samplers.base import Drawn, Fresh, Rollout, Score


class MemorylessSampler(Stateless):
    """A sampler that learns nothing from a stage's rollouts."""

    def learn(self, rollouts: Sequence[Rollout], stage: int) -> None:
        """Nothing to note."""


class FreshSampler(MemorylessSampler):
    """Every board is new."""

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Drawn:
        """`count` fresh boards."""
        return Drawn(fresh(count), count)
