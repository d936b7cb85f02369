"""Rates with their 95 % intervals."""

from collections.abc import Sequence
from math import comb, sqrt
from statistics import NormalDist

import numpy as np

NORMAL = NormalDist().inv_cdf(0.975)  # standard errors to either side of a 95 % interval


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % score interval (Wilson, 1927) of the rate `count` / `total` of independent trials.

    Without trials it is all of [0, 1].
    """
    return _score_interval(count / total, total) if total else (0.0, 1.0)


def mean_of_rates(counts: Sequence[tuple[int, int]]) -> tuple[float, tuple[float, float]]:
    """The unweighted mean of the rates `count` / `total` of independent trials, and its 95 % interval.

    Each rate is as far from its mean as Wilson's interval goes, to either side; their squares add up (Zou and Donner,
    2008).
    """
    rates = [count / total if total else 0.0 for count, total in counts]
    ends = [wilson(count, total) for count, total in counts]
    mean = sum(rates) / len(rates)
    below = sqrt(sum((rate - low) ** 2 for rate, (low, _) in zip(rates, ends, strict=True))) / len(rates)
    above = sqrt(sum((high - rate) ** 2 for rate, (_, high) in zip(rates, ends, strict=True))) / len(rates)
    return mean, (max(0.0, mean - below), min(1.0, mean + above))


def pass_at_k(right: Sequence[int], samples: int, k: int) -> tuple[float, tuple[float, float]]:
    """pass@k over boards of `samples` answers each, of which `right` are right: the estimate and its 95 % interval.

    1 - C(n - c, k) / C(n, k) is the chance that k of the n answers, drawn without replacement, include a right one: the
    unbiased estimate of Chen et al. (2021), equation 1. The interval is the score interval of its mean over boards, of
    as many independent trials as would spread that mean by as much (Franco et al., 2019): of boards that are all alike
    it equals the rate of all answers, and if all or no answers are right, the boards' alone, so it is never a point.
    """
    each = np.array([1 - comb(samples - count, k) / comb(samples, k) for count in right])
    mean = float(each.mean())
    alone = mean * (1 - mean)  # the variance of independent trials
    seen = float(each.var(ddof=1)) if len(each) > 1 else alone
    gain = min(samples, alone / seen) if seen > 0 else samples if alone > 0 else 1
    return mean, _score_interval(mean, len(each) * gain)


def _score_interval(rate: float, trials: float) -> tuple[float, float]:
    """Wilson's interval of a rate of any number of trials more than 0."""
    part = NORMAL**2 / trials
    middle = (rate + part / 2) / (1 + part)
    half = sqrt(part * (rate * (1 - rate) + part / 4)) / (1 + part)
    return max(0.0, middle - half), min(1.0, middle + half)
