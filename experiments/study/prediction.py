"""Rank correlations of the trial of random configs with the gains of training on them."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from scipy.stats import bootstrap, rankdata, spearmanr

from lakewright.engineer.trial import Trial
from lakewright.experiments.study.study import Plan

RESAMPLING_SEED = 0


class Rank(msgspec.Struct, frozen=True):
    """Spearman's rank correlation with the gain, its two-sided p-value, and a 95 % bootstrap interval over configs."""

    rho: float
    p_value: float
    low: float
    high: float


class Prediction(msgspec.Struct, frozen=True):
    """Per config the trial's score and share of informative groups, and the gain in points after training on it."""

    scores: list[float]
    informative: list[float]
    gains: list[float]
    by_score: Rank | None
    by_informative: Rank | None


def prediction_of(trial: Trial, plan: Plan, gains: Mapping[str, float]) -> Prediction | None:
    """Rank correlations of the trial with the gains of the configs, in points by name; None of fewer than three."""
    tried = {planned.arm: candidate for planned, candidate in zip(plan.runs, trial.candidates, strict=True)}
    if len(gains) < 3:
        return None
    scores = [tried[arm].score for arm in gains]
    informative = [tried[arm].signal.informative for arm in gains]
    found = list(gains.values())
    return Prediction(scores, informative, found, correlate_ranks(scores, found), correlate_ranks(informative, found))


def correlate_ranks(one: Sequence[float], other: Sequence[float]) -> Rank | None:
    """Spearman's rank correlation; None where all values of one are alike, which have no ranks."""
    if min(len(set(one)), len(set(other))) < 2:
        return None
    found = spearmanr(one, other)
    again = bootstrap(
        (one, other),
        _correlate_ranks,
        paired=True,
        vectorized=False,
        method="percentile",
        n_resamples=2000,
        rng=RESAMPLING_SEED,
    )
    return Rank(float(found.statistic), float(found.pvalue), *map(float, again.confidence_interval))


def _correlate_ranks(one: np.ndarray, other: np.ndarray) -> float:
    """The correlation of ranks; 0 for a resample of equal values."""
    ranks = rankdata(one), rankdata(other)
    return float(np.corrcoef(*ranks)[0, 1]) if all(np.ptp(rank) for rank in ranks) else 0.0
