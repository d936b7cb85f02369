"""Groups of rollouts: several answers of one policy to the same problem."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from lakewright.core_jax.terms import FAILURE_NAMES

EQUAL = 1e-6  # rewards of a group that differ by no more are all equal
ADVANTAGE_EPSILON = 1e-4  # TRL's, in the advantage (reward - mean) / (std + epsilon)


def informative(rewards: np.ndarray) -> bool:
    """Return True if the rewards of a group, float [G], are not all equal: else GRPO learns nothing from it."""
    return bool(np.ptp(rewards) > EQUAL)


class RolloutGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rollouts of one problem.

    key: the problem's, of a board `core_jax.rows.board_key`; groups with one key have the same problem, drawn more than
    once. In files its name is `board`. valid: how many of the `completions` are valid. reward, deviation, spread: for
    the completions' rewards the mean, the mean absolute deviation from it, and the standard deviation.
    failures: how many fail in each way, if known; ways that do not occur are left out. tokens: the sum of the
    lengths of the completions, if known.
    """

    key: str = msgspec.field(name="board")
    completions: int
    valid: int
    reward: float
    deviation: float
    spread: float
    failures: dict[str, int] = {}
    tokens: int | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(
        cls,
        key: str,
        valid: Sequence[bool] | np.ndarray,
        rewards: Sequence[float] | np.ndarray,
        failures: np.ndarray | None = None,
    ) -> "RolloutGroup":
        """The group of G completions.

        Args:
            key: the problem's key.
            valid: bool [G], whether each is a valid plan.
            rewards: float [G].
            failures: int [G], a `Failure` of each, or None if unknown.
        """
        earned = np.asarray(rewards, float)
        mean = float(earned.mean())
        # ddof 1 as in TRL, whose advantage this reproduces; equal rewards have no spread, however rounding falls.
        spread = float(earned.std(ddof=1)) if informative(earned) else 0.0
        found = Counter(FAILURE_NAMES[code] for code in failures if code) if failures is not None else {}
        deviation = float(np.abs(earned - mean).mean())
        return cls(key, len(earned), int(np.sum(valid)), mean, deviation, spread, dict(found))

    @property
    def success(self) -> float:
        """p, the share of valid plans."""
        return self.valid / self.completions

    @property
    def learnability(self) -> float:
        """p (1 - p): Rutherford et al. 2024, arXiv 2408.15099."""
        return self.success * (1 - self.success)

    @property
    def informative(self) -> bool:
        """Return `informative` of the group's rewards."""
        return self.spread > 0

    @property
    def mixed(self) -> bool:
        """True if some plans are valid and some are not, 0 < correct < G: DAPO's filter, arXiv 2503.14476."""
        return 0 < self.valid < self.completions

    @property
    def advantage(self) -> float:
        """The mean of GRPO's absolute advantages abs(reward - mean) / (std + epsilon)."""
        return self.deviation / (self.spread + ADVANTAGE_EPSILON)


class GroupStatistics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Many groups as one: counts of groups and completions, and means over groups; means of no groups are 0."""

    groups: int
    informative: int
    mixed: int
    completions: int
    valid: int
    reward: float
    learnability: float
    advantage: float

    @property
    def success(self) -> float:
        """The share of valid plans; 0 without completions."""
        return self.valid / self.completions if self.completions else 0.0

    @property
    def informative_share(self) -> float:
        """The share of groups whose rewards are not all equal; 0 without groups."""
        return self.informative / self.groups if self.groups else 0.0


def statistics_of(groups: Iterable[RolloutGroup]) -> GroupStatistics:
    """The statistics of some groups."""
    groups = list(groups)

    def mean(field: str) -> float:
        return math.fsum(getattr(group, field) for group in groups) / len(groups) if groups else 0.0

    return GroupStatistics(
        groups=len(groups),
        informative=sum(group.informative for group in groups),
        mixed=sum(group.mixed for group in groups),
        completions=sum(group.completions for group in groups),
        valid=sum(group.valid for group in groups),
        reward=mean("reward"),
        learnability=mean("learnability"),
        advantage=mean("advantage"),
    )
