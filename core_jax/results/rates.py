"""Rates with their 95 % intervals."""

from collections.abc import Sequence
from math import comb, sqrt

import numpy as np
from scipy.stats import binomtest


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % score interval (Wilson, 1927) of the rate `count` / `total` of independent trials.

    Without trials it is all of [0, 1].
    """
    if not total:
        return 0.0, 1.0
    found = binomtest(count, total).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def pass_at_k(right: Sequence[int], samples: int, k: int) -> tuple[float, float]:
    """pass@k over boards of `samples` answers each, of which `right` are right: estimate and half its 95 % interval.

    1 - C(n - c, k) / C(n, k) is the chance that k of the n answers, drawn without replacement, include a right one: the
    unbiased estimate of Chen et al. (2021), equation 1. The interval is that of the mean over boards.
    """
    each = np.array([1 - comb(samples - count, k) / comb(samples, k) for count in right])
    spread = float(each.std(ddof=1)) if len(each) > 1 else 0.0
    return float(each.mean()), 1.96 * spread / sqrt(len(each))
