"""DAPO's filter, dynamic sampling: Yu et al. 2025, arXiv 2503.14476, equation 11."""

from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import Count
from lakewright.engineer.random_generators import Key
from lakewright.engineer.samplers.base import Drawn, Fresh, Score
from lakewright.engineer.samplers.fresh import MemorylessSampler


class DapoSampler(MemorylessSampler):
    """Fresh boards are rolled out, and those with 0 < correct < G kept, until there are enough or `rounds` x count have
    been looked at, or the budget allows no more; the rest is filled with the first of those that were
    rejected, and with boards that were not looked at.
    """

    def __init__(self, rounds: Count = 3) -> None:
        self.rounds = rounds

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Drawn:
        """Boards on which some plans are valid and some are not."""
        kept: list[Row] = []
        passed: list[Row] = []
        unseen: list[Row] = []
        for _ in range(self.rounds):
            rows = fresh(count)
            rollouts = score(rows)
            for row, group in rollouts:
                (kept if group.mixed else passed).append(row)
            unseen = rows[len(rollouts) :]
            if unseen or len(kept) >= count:
                break
        seen = len(kept) + len(passed)
        return Drawn((kept + passed + unseen)[:count], seen + len(unseen), scored=seen)
