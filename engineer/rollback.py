"""The rollback of a stage: its settings, and the test of whether validation fell."""

import math
from collections.abc import Sequence

import msgspec

from lakewright.core_jax.support import Share


class RollbackSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the rollback of a stage."""

    enabled: bool = True
    """Whether a stage is rolled back if its policy solves significantly fewer held-out problems."""
    level: Share = 0.05
    """Significance level of the one-sided McNemar test."""
    weights: bool = True
    """Whether the trainer restores the weights, too: then the policy of a stage that is rolled back is forgotten."""


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two policies on the same problems: how many only the later solves, and how many only the earlier.

    p_value: the chance of as many lost among those that changed, if each were as likely gained as lost.
    """

    gained: int
    lost: int
    p_value: float

    def summary(self) -> str:
        """The line about a policy that fell."""
        return f"validation fell: {self.lost} lost, {self.gained} gained, p {self.p_value:.2g}"


def compare_rounds(before: str, after: str) -> Comparison | None:
    """The held-out answers of two policies, a digit for each problem; None if they are not of as many problems."""
    if not after or len(before) != len(after):
        return None
    return compare_answers(*([one == "1" for one in text] for text in (before, after)))


def has_fallen(comparison: Comparison | None, settings: RollbackSettings) -> bool:
    """Return True if the later policy lost more problems than chance explains."""
    # One-sided: a policy that gained is never rolled back. Without a real change, at most `level` of the rounds are.
    return comparison is not None and comparison.p_value < settings.level


def compare_answers(before: Sequence[bool], after: Sequence[bool]) -> Comparison:
    """The one-sided exact McNemar test (McNemar 1947) on the valid answers of two policies, problem by problem.

    Raises ValueError if the two have unequal numbers of problems.
    """
    # Problems that both solve, or neither, say nothing of a change: only those that differ are counted.
    pairs = list(zip(before, after, strict=True))
    gained = sum(new and not old for old, new in pairs)
    lost = sum(old and not new for old, new in pairs)
    return Comparison(gained, lost, _count_tail(lost, gained + lost) / 2 ** (gained + lost))


def _count_tail(fewest: int, tosses: int) -> int:
    """The number of outcomes with at least that many heads, of the 2^tosses of a fair coin."""
    # Whole numbers: exact for any number of problems, where a sum of floats would lose the small tail.
    ways = total = math.comb(tosses, fewest)
    for heads in range(fewest, tosses):
        ways = ways * (tosses - heads) // (heads + 1)
        total += ways
    return total
