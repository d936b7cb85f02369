"""DAPO's filter, dynamic sampling: Yu et al. 2025, arXiv 2503.14476, equation 11."""

from lakewright.core_jax.support import Count
from lakewright.engineer.environment import Problem
from lakewright.engineer.random_generators import Key
from lakewright.engineer.samplers.base import Fresh, MemorylessSampler, Sampled, Score


class DapoSampler(MemorylessSampler):
    """Fresh problems are rolled out, and those with 0 < correct < G selected, until there are enough, or `rounds` x
    count have been rolled out, or the budget allows no more; the rest is filled with the first of those that were
    rejected, and with problems that were not rolled out.
    """

    def __init__(self, rounds: Count = 3) -> None:
        self.rounds = rounds

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Sampled:
        """Problems to which some answers are valid and some are not."""
        mixed: list[Problem] = []
        rejected: list[Problem] = []
        unseen: list[Problem] = []
        for _ in range(self.rounds):
            problems = fresh(count)
            rollouts = score(problems)
            for problem, group in rollouts:
                (mixed if group.mixed else rejected).append(problem)
            unseen = problems[len(rollouts) :]
            if unseen or len(mixed) >= count:
                break
        seen = len(mixed) + len(rejected)
        return Sampled((mixed + rejected + unseen)[:count], seen + len(unseen), scored=seen)
