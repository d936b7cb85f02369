"""The fitted model: a Gaussian posterior of the weights of a logistic regression."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from lakewright.engineer.curriculum_cells import Cell
from lakewright.engineer.difficulty.cell_features import features
from lakewright.engineer.difficulty.settings import Objective

NODES = np.linspace(-8, 8, 401)  # of the quadrature, in standard deviations; denser than the logistic function is steep
MASSES = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()  # of a standard normal distribution at NODES


class Prediction(msgspec.Struct, frozen=True):
    """P(valid) of cells: the posterior mean and standard deviation, float [N] each."""

    mean: np.ndarray
    deviation: np.ndarray


class Sample(NamedTuple):
    """P(valid) of N cells under each of M weights, float [M, N] each: `success`, and `best`, whether with a forced wait
    or without."""

    success: np.ndarray
    best: np.ndarray


class DifficultyModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The posterior N(weights, covariance) of a logistic regression on `features` (Laplace's approximation).

    groups: how many it was fitted to, those of earlier stages by their decayed weights. evenness: E[p (1 - p)] over the
    boards of a cell as a share of p (1 - p) of the cell's mean: boards of a cell differ, so it is less than 1.
    objective, reach: what boards are worth. by_size: the prior of each size's own effects.
    """

    weights: list[float]
    covariance: list[list[float]]
    groups: float
    evenness: float
    objective: Objective = "learnability"
    by_size: float = 0.0
    reach: float = 0.0

    def predict(self, cells: Sequence[Cell], agents: Sequence[int]) -> Prediction:
        """P(valid) of cells, whether they were ever drawn or not."""
        points = features(cells, agents, self.by_size)
        logit = points @ np.array(self.weights)
        variance = np.einsum("ni,ij,nj->n", points, np.array(self.covariance), points)
        return logistic_normal_moments(logit, variance)

    def sampled(self, cells: Sequence[Cell], agents: Sequence[int], rng: np.random.Generator, count: int) -> Sample:
        """P(valid) of cells under `count` weights drawn from the posterior."""
        weights = rng.multivariate_normal(np.array(self.weights), np.array(self.covariance), count, method="eigh")
        success, other = (
            _logistic(weights @ features(kind, agents, self.by_size).T)
            for kind in (cells, [cell._replace(forced=not cell.forced) for cell in cells])
        )
        return Sample(success, np.maximum(success, np.where(np.array(agents) > 1, other, 0)))

    def value(self, drawn: Sample) -> np.ndarray:
        """What boards of cells are worth: their expected learnability, or their regret, times best^reach.

        So little is expected of maps on which the policy can do nothing yet. With the regret and reach 1 that is
        p (1 - p) for the easier kind of boards of that size and hole ratio, and more for the other.
        """
        regret = self.objective == "regret"
        return (1 - drawn.success if regret else self.learnability(drawn.success)) * drawn.best**self.reach

    def learnability(self, success: np.ndarray) -> np.ndarray:
        """The expected p (1 - p) of boards of cells whose P(valid) is `success`."""
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
