"""The rollback of a stage: its settings, and the test of whether validation fell."""

import math
from collections.abc import Sequence

import msgspec

from lakewright.core_jax.support import Share


class RollbackSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the rollback of a stage."""

    enabled: bool = True
    """Whether a stage is rolled back whose policy solves significantly fewer held-out boards."""
    level: Share = 0.05
    """Significance level of the one-sided McNemar test."""
    weights: bool = True
    """Whether the weights go back too, not only the config."""


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two policies on the same problems: how many only the later solves, and how many only the earlier.

    p_value: the chance of as many lost among those that changed, if each were as likely gained as lost.
    """

    gained: int
    lost: int
    p_value: float


def compare_answers(before: Sequence[bool], after: Sequence[bool]) -> Comparison:
    """The one-sided exact McNemar test (McNemar 1947) on the valid answers of two policies, problem by problem.

    Raises ValueError where the two have unequal numbers of problems.
    """
    pairs = list(zip(before, after, strict=True))
    gained = sum(new and not old for old, new in pairs)
    lost = sum(old and not new for old, new in pairs)
    return Comparison(gained, lost, _count_tail(lost, gained + lost) / 2 ** (gained + lost))


def _count_tail(fewest: int, tosses: int) -> int:
    """The number of outcomes with at least that many heads, of the 2^tosses of a fair coin."""
    ways = total = math.comb(tosses, fewest)
    for heads in range(fewest, tosses):
        ways = ways * (tosses - heads) // (heads + 1)
        total += ways
    return total
