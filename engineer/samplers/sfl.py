"""SFL, sampling for learnability: Rutherford et al. 2024, "No regrets", arXiv 2408.15099."""

from typing import Annotated

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Share
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.samplers.base import Fresh, MemorylessSampler, Sampled, Score

Pool = Annotated[float, msgspec.Meta(gt=0, le=100)]


class SflSampler(MemorylessSampler):
    """Of `pool` x count fresh problems that are rolled out, those of the largest p (1 - p) are `mix` of the stage's;
    the rest are fresh problems that were not rolled out, as in the paper, also if the budget allows no larger pool.
    They come in an order of their own chance.
    """

    def __init__(self, pool: Pool = 2.0, mix: Share = 0.5) -> None:
        if not pool >= mix:
            raise InputError(f"options: pool is {pool:g}, less than mix {mix:g}; choose more")
        self.pool = pool
        self.mix = mix

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Sampled:
        """The most learnable of a pool, and fresh problems."""
        chosen = round(self.mix * count)
        pool = fresh(max(chosen, round(self.pool * count)))
        rollouts = score(pool)
        best = sorted(rollouts, key=lambda rollout: -rollout[1].learnability)[:chosen]
        rest = count - len(best)
        problems = [problem for problem, _ in best] + (fresh(rest) if rest else [])
        order = numpy_rng(key).permutation(count)
        return Sampled([problems[i] for i in order], len(pool) + rest, scored=len(rollouts))
