"""The difficulty model: a Gaussian posterior of the weights of a logistic regression."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty.features import compute_features
from lakewright.engineer.difficulty.settings import Objective
from lakewright.engineer.space import DesignSpace

NODES = np.linspace(-8, 8, 401)  # of the quadrature, in standard deviations; denser than the logistic function is steep
MASSES = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()  # of a standard normal distribution at NODES


class Prediction(msgspec.Struct, frozen=True):
    """P(valid) of cells: the posterior mean and standard deviation, float [N] each."""

    mean: np.ndarray
    deviation: np.ndarray


class Sample(NamedTuple):
    """P(valid) of N cells under each of M weights, float [M, N] each: `success`, and `best`, the largest of it and that
    of the cells that differ in their traits alone."""

    success: np.ndarray
    best: np.ndarray


class DifficultyModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The posterior N(weights, covariance) of a logistic regression on `features` (Laplace's approximation).

    groups: how many it was fitted to, those of earlier stages by their decayed weights. evenness: E[p (1 - p)] over the
    problems of a cell as a share of p (1 - p) of the cell's mean: problems of a cell differ, so it is less than 1.
    objective, reach: what problems are worth. by_size: the prior of each stratum's own effects.
    """

    weights: list[float]
    covariance: list[list[float]]
    groups: float
    evenness: float
    objective: Objective = "learnability"
    by_size: float = 0.0
    reach: float = 0.0

    def predict(self, cells: Sequence[Cell], space: DesignSpace) -> Prediction:
        """P(valid) of cells that have their givens, whether they were ever drawn or not."""
        points = compute_features(cells, space, self.by_size)
        logit = points @ np.array(self.weights)
        variance = np.einsum("ni,ij,nj->n", points, np.array(self.covariance), points)
        return logistic_normal_moments(logit, variance)

    def sample(self, cells: Sequence[Cell], space: DesignSpace, rng: np.random.Generator, count: int) -> Sample:
        """P(valid) of cells under `count` weights drawn from the posterior."""
        weights = rng.multivariate_normal(np.array(self.weights), np.array(self.covariance), count, method="eigh")
        success = _logistic(weights @ compute_features(cells, space, self.by_size).T)
        best = success
        siblings = [space.siblings(cell) for cell in cells]
        for turn in range(max(map(len, siblings), default=0)):
            others = [mine[turn] if turn < len(mine) else cell for mine, cell in zip(siblings, cells, strict=True)]
            best = np.maximum(best, _logistic(weights @ compute_features(others, space, self.by_size).T))
        return Sample(success, best)

    def value(self, drawn: Sample) -> np.ndarray:
        """What problems of cells are worth: their expected learnability, or their regret, times best^reach.

        So little is expected where the policy can do nothing yet. With the regret and reach 1 that is p (1 - p) for the
        easier kind of problems of a stratum and its levels, and more for the other.
        """
        regret = self.objective == "regret"
        return (1 - drawn.success if regret else self.learnability(drawn.success)) * drawn.best**self.reach

    def learnability(self, success: np.ndarray) -> np.ndarray:
        """The expected p (1 - p) of problems of cells whose P(valid) is `success`."""
        return self.evenness * success * (1 - success)


def logistic_normal_moments(logit: np.ndarray, variance: np.ndarray) -> Prediction:
    """Mean and standard deviation of logistic(x) for x ~ N(logit, variance), float [N] each.

    By the trapezoidal rule on NODES, which for smooth functions that vanish at both ends converges exponentially.
    """
    success = _logistic(logit[:, None] + np.sqrt(variance)[:, None] * NODES)
    mean = success @ MASSES
    return Prediction(mean, np.sqrt((success - mean[:, None]) ** 2 @ MASSES))


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))
