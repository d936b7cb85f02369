"""The fit of version 0.2's regression to observations, by scikit-learn."""

import math
from collections.abc import Sequence

import numpy as np

from lakewright.core_jax.support import naming_extra
from lakewright.engineer.difficulty.abilities import apply_logistic
from lakewright.engineer.difficulty.model import DifficultyModel, DifficultySettings, Observation
from lakewright.engineer.difficulty.regression import compute_features, count_features
from lakewright.engineer.space import DesignSpace


def fit_regression(
    observations: Sequence[Observation], settings: DifficultySettings, space: DesignSpace
) -> DifficultyModel:
    """The model of all groups rolled out so far; without any, the prior.

    A group counts as one observation, however many answers it has: answers to one problem are alike. With weights w,
    groups g of age t, their features x and shares of valid answers y, it maximises

        sum_g decay^t_g (y_g log p_g + (1 - y_g) log(1 - p_g)) - |w|^2 / 2,    p_g = logistic(x_g w),

    by scikit-learn; the covariance is the inverse of the Hessian there (Laplace).
    """
    objective = settings.resolved_objective
    also = settings.by_size, settings.reach
    ages = np.array([seen.age for seen in observations], int)
    groups = settings.decay**ages * np.array([seen.groups for seen in observations], float)
    if not groups.sum():
        size = count_features(space, settings.by_size)
        return DifficultyModel([0.0] * size, np.eye(size).tolist(), 0.0, 1.0, objective, *also)
    points = compute_features([seen.cell for seen in observations], space, settings.by_size)
    success = np.array([seen.success / seen.groups for seen in observations])
    weights = _find_mode(points, success, groups)
    p = apply_logistic(points @ weights)
    # The prior N(0, 1) of each weight is the identity; features carry how wide an effect's prior is.
    hessian = (points * (groups * p * (1 - p))[:, None]).T @ points + np.eye(len(weights))
    evenness = _estimate_evenness(observations, p, settings.decay**ages)
    covariance = np.linalg.inv(hessian).tolist()
    return DifficultyModel(weights.tolist(), covariance, float(groups.sum()), evenness, objective, *also)


def _find_mode(points: np.ndarray, success: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The mode of the posterior: a cell is given twice, weighted by its valid groups and by the others."""
    with naming_extra("the difficulty model", "sklearn"):
        from sklearn.linear_model import LogisticRegression  # a second to load: only who fits waits

    # scikit-learn takes classes, not shares: each cell is one valid and one invalid example with fitting weights.
    known = np.concatenate([groups * success, groups * (1 - success)])
    valid = np.repeat([1, 0], len(points))
    if min(known[valid == 1].sum(), known[valid == 0].sum()) < 1e-3:  # a regression needs both kinds
        known = np.maximum(known, 1e-3)
    model = LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000, tol=1e-8)
    return model.fit(np.concatenate([points, points]), valid, sample_weight=known).coef_[0]


def _estimate_evenness(observations: Sequence[Observation], p: np.ndarray, decay: np.ndarray) -> float:
    """The observed p (1 - p) of problems over the model's own, if it was observed."""
    known = [part for part in zip(decay, observations, p, strict=True) if part[1].variance is not None]
    seen = math.fsum(d * (found.variance or 0) for d, found, _ in known)
    meant = math.fsum(d * found.groups * q * (1 - q) for d, found, q in known)
    return min(1.0, seen / meant) if meant else 1.0
