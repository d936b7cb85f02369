"""The statistics of a study: interquartile means with bootstrap intervals, corrected paired tests, ranks."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from scipy.stats import bootstrap, rankdata, spearmanr, trim_mean, ttest_rel

from lakewright.engineer.trial import Trial
from lakewright.experiments.studies.study import Plan

RESAMPLES = 10_000
QUARTER = 0.25
RESAMPLING_SEED = 0


class MeanEstimate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


class PairedTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two arms on equal seeds: the mean difference in points, and the p-value before and after Holm's correction."""

    arm: str
    other: str
    difference: MeanEstimate
    seeds: int
    p_value: float
    corrected: float


def interquartile_mean(values: Sequence[float], resamples: int = RESAMPLES) -> MeanEstimate:
    """The mean of the middle half of runs (Agarwal et al. 2021, arXiv 2108.13264), resampled by run."""
    return _estimate_statistic(values, resamples, lambda sample, axis: trim_mean(sample, QUARTER, axis=axis))


def run_paired_tests(
    arms: dict[str, dict[int, float]], family: Sequence[tuple[str, str]], resamples: int = RESAMPLES
) -> list[PairedTest]:
    """The comparisons of a family for which both arms have two seeds or more in common.

    arms: the outcome of each arm by seed. resamples: how many the bootstrap draws. Two-sided paired t-tests; Holm 1979
    over those that can be made.
    """
    compared = []
    for arm, other in family:
        shared = sorted(arms.get(arm, {}).keys() & arms.get(other, {}).keys())
        if len(shared) > 1:
            pairs = np.array([(arms[arm][seed], arms[other][seed]) for seed in shared])
            compared.append((arm, other, pairs))
    values = [_p_value(pairs) for _, _, pairs in compared]
    return [
        PairedTest(arm, other, _estimate_statistic(pairs[:, 0] - pairs[:, 1], resamples), len(pairs), value, corrected)
        for (arm, other, pairs), value, corrected in zip(compared, values, correct_by_holm(values), strict=True)
    ]


def correct_by_holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: p_(i) becomes max over j <= i of min(1, (m - j) p_(j)), j from 0."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(np.argsort(p_values, kind="stable").tolist()):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def _p_value(pairs: np.ndarray) -> float:
    """1 if the two never differ, which no test can say anything of."""
    differences = pairs[:, 0] - pairs[:, 1]
    return 1.0 if not np.ptp(differences) and not differences[0] else float(ttest_rel(*pairs.T).pvalue)


def _estimate_statistic(values: Sequence[float] | np.ndarray, resamples: int, statistic=np.mean) -> MeanEstimate:
    data = np.asarray(values, float)
    mean = float(statistic(data, axis=0))
    if len(data) < 2 or not np.ptp(data):
        return MeanEstimate(mean, mean, mean)
    found = bootstrap((data,), statistic, n_resamples=resamples, method="percentile", rng=0)
    return MeanEstimate(mean, *map(float, found.confidence_interval))


class Rank(msgspec.Struct, frozen=True):
    """Spearman's rank correlation with the gain, its two-sided p-value, and a 95 % bootstrap interval over configs."""

    rho: float
    p_value: float
    low: float
    high: float


class TrialPrediction(msgspec.Struct, frozen=True):
    """Per config the trial's score and share of informative groups, and the gain in points after training on it."""

    scores: list[float]
    informative: list[float]
    gains: list[float]
    by_score: Rank | None
    by_informative: Rank | None


def prediction_of(trial: Trial, plan: Plan, gains: Mapping[str, float]) -> TrialPrediction | None:
    """Rank correlations of the trial with the gains of the configs, in points by name; None for fewer than three."""
    tried = {planned.arm: candidate for planned, candidate in zip(plan.runs, trial.candidates, strict=True)}
    if len(gains) < 3:
        return None
    scores = [tried[arm].score for arm in gains]
    informative = [tried[arm].signal.informative for arm in gains]
    found = list(gains.values())
    return TrialPrediction(
        scores, informative, found, correlate_ranks(scores, found), correlate_ranks(informative, found)
    )


def correlate_ranks(one: Sequence[float], other: Sequence[float]) -> Rank | None:
    """Spearman's rank correlation; None if all values of one are alike, which have no ranks."""
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
