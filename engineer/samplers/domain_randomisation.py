"""Domain randomisation for each board: Tobin et al. 2017, arXiv 1703.06907."""

import numpy as np

from lakewright.core_jax import generator
from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig
from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import Count
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.samplers.base import Drawn, Fresh, Score
from lakewright.engineer.samplers.fresh import MemorylessSampler


class DomainRandomisationSampler(MemorylessSampler):
    """theta = (size, hole ratio, forced wait) ~ U(box), drawn for every `alike` boards; again where none exist.

    Only the sizes and the number of agents are the config's.
    """

    def __init__(self, alike: Count = 8) -> None:
        self.alike = alike

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Drawn:
        """Boards of many configs, mixed."""
        rng = numpy_rng(key)
        rows: list[Row] = []
        while len(rows) < count:
            rows += fresh(min(self.alike, count - len(rows)), _theta(fresh.config, rng))
        return Drawn([rows[i] for i in rng.permutation(count)], count)


def _theta(config: EnvConfig, rng: np.random.Generator) -> EnvConfig:
    while True:
        size, hole_ratio = int(rng.choice(sorted(config.sizes))), float(rng.uniform(0, MAX_HOLE_RATIO))
        forced = bool(rng.integers(2))
        if generator.can_draw(size, config.agents, hole_ratio, forced):
            return EnvConfig.single(size, config.agents, hole_ratio, float(forced))
