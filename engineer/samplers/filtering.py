"""Samplers that roll out fresh problems and select some of them: SFL and DAPO."""

from dataclasses import dataclass
from typing import Annotated

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, Share
from lakewright.engineer.problems import Problem
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.samplers.base import Fresh, MemorylessSampler, Sampled, ScoreProblems

FilterPool = Annotated[float, msgspec.Meta(gt=0, le=100)]


@dataclass
class SflSampler(MemorylessSampler):
    """Of `pool` x count fresh problems that are rolled out, the ones with the largest p (1 - p) are `mix` of the
    stage's. The rest are fresh problems that were not rolled out, as in the paper, also if the budget allows no larger
    pool. They come in a random order.
    """

    pool: FilterPool = 2.0
    mix: Share = 0.5

    def __post_init__(self) -> None:
        if not self.pool >= self.mix:
            raise InputError(f"options: pool is {self.pool:g}, less than mix {self.mix:g}; choose more")

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """The most learnable of a pool, and fresh problems."""
        chosen = round(self.mix * count)
        pool = fresh(max(chosen, round(self.pool * count)))
        rollouts = score(pool)
        best = sorted(rollouts, key=lambda rollout: -rollout[1].learnability)[:chosen]
        rest = count - len(best)
        problems = [problem for problem, _ in best] + (fresh(rest) if rest else [])
        order = numpy_rng(key).permutation(count)
        return Sampled([problems[i] for i in order], len(pool) + rest, scored=len(rollouts))


@dataclass
class DapoSampler(MemorylessSampler):
    """Rolls out fresh problems and selects those with 0 < correct < G, until there are enough.

    It also ends once `rounds` x count have been rolled out, or the budget allows no more. The rest is filled with the
    first rejected problems, and with problems that were not rolled out.
    """

    rounds: Count = 3

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """Problems to which some answers are valid and some are not."""
        mixed: list[Problem] = []
        rejected: list[Problem] = []
        unseen: list[Problem] = []
        for _ in range(self.rounds):
            problems = fresh(count)
            rollouts = score(problems)
            for problem, group in rollouts:
                (mixed if group.mixed else rejected).append(problem)
            # Fewer rollouts than problems means that the budget ended; what is left fills the stage without a score.
            unseen = problems[len(rollouts) :]
            if unseen or len(mixed) >= count:
                break
        seen = len(mixed) + len(rejected)
        return Sampled((mixed + rejected + unseen)[:count], seen + len(unseen), scored=seen)
