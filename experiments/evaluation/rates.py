"""Rates and how sure they are."""

from collections.abc import Sequence
from math import comb, sqrt

import numpy as np
from scipy.stats import binomtest


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % score interval (Wilson, 1927) of a share of `total` independent trials; all of [0, 1] where there are
    none.
    """
    if not total:
        return 0.0, 1.0
    found = binomtest(count, total).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def pass_at_k(right: Sequence[int], samples: int, k: int) -> tuple[float, float]:
    """pass@k over boards of `samples` answers each, of which `right` are right: the unbiased estimate and half of its
    95 % interval, from the spread over boards.

    1 - C(n - c, k) / C(n, k) is the chance that k of the n answers, drawn without replacement, hold a right one
    (Chen et al., 2021, equation 1).
    """
    each = np.array([1 - comb(samples - count, k) / comb(samples, k) for count in right])
    spread = float(each.std(ddof=1)) if len(each) > 1 else 0.0
    return float(each.mean()), 1.96 * spread / sqrt(len(each))
