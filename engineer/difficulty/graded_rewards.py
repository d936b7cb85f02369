"""Graded rewards: the signal of groups without a valid answer, whose answers still earn more or less.

An observation has the sum of these signals (`Observation.graded`), each four times the variance of a group's rewards.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from lakewright.engineer.cells import Stratum
from lakewright.engineer.difficulty.model import Observation
from lakewright.engineer.signal import ROUNDS_TO_RECHECK
from lakewright.engineer.space import DesignSpace

FADING = 0.5  # of the weight of a round's groups with every later round
PRIOR_GROUPS = 2.0  # how many groups of a stratum the mean of all strata counts for
LEAST_SIGNAL = 0.01  # of a group, on average; less is noise of the rewards


def find_graded(observations: Iterable[Observation]) -> set[Stratum]:
    """The strata whose groups without a valid answer had a signal in the last ROUNDS_TO_RECHECK rounds."""
    signals, groups = defaultdict[Stratum, float](float), Counter[Stratum]()
    for one in observations:
        if one.age < ROUNDS_TO_RECHECK:
            signals[one.cell.stratum] += one.graded or 0.0
            groups[one.cell.stratum] += one.groups
    return {stratum for stratum, signal in signals.items() if signal >= LEAST_SIGNAL * groups[stratum]}


def measure_graded(observations: Sequence[Observation], space: DesignSpace) -> list[float] | msgspec.UnsetType:
    """The mean signal of groups without a valid answer by stratum, float [S], pooled with the mean of all strata.

    observations: groups; answers to held-out problems count for nothing. Unset if no group without a valid answer had a
    signal.
    """
    if not any(seen.graded for seen in observations):
        return msgspec.UNSET
    signal, groups = np.zeros(len(space.strata)), np.zeros(len(space.strata))
    for seen in observations:
        size = (seen.answers or seen.groups) / seen.groups
        if size > 1:
            rank, weight = space.ranks[seen.cell.stratum], FADING**seen.age
            failing = (1 - min(1.0, seen.success / seen.groups)) ** size  # the share of groups without a valid answer
            signal[rank] += weight * (seen.graded or 0.0)
            groups[rank] += weight * seen.groups * failing
    overall = signal.sum() / (groups.sum() + PRIOR_GROUPS)
    return np.clip((signal + PRIOR_GROUPS * overall) / (groups + PRIOR_GROUPS), 0, 1).tolist()
