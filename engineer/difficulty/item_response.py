"""The fitted model: a Gaussian posterior of the weights of a logistic regression."""

from collections.abc import Sequence

import msgspec
import numpy as np

from engineer.curriculum_cells import Cell
from engineer.difficulty.cell_features import features
from engineer.difficulty.settings import Objective

PROBIT = np.pi / 8  # MacKay 1992: the mean of a logistic function of a Gaussian


class Prediction(msgspec.Struct, frozen=True):
    """P(valid) of cells: the posterior mean and standard deviation, float [N] each."""

    mean: np.ndarray
    deviation: np.ndarray


class DifficultyModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The posterior N(weights, covariance) of a logistic regression on `features` (Laplace's approximation).

    groups: how many it was fitted to, those of earlier stages by their decayed weights. evenness: E[p (1 - p)] over the
    boards of a cell as a share of p (1 - p) of the cell's mean: boards of a cell differ, so it is less than 1.
    objective: what boards are worth.
    """

    weights: list[float]
    covariance: list[list[float]]
    groups: float
    evenness: float
    objective: Objective = "learnability"

    def predict(self, cells: Sequence[Cell], agents: Sequence[int]) -> Prediction:
        """P(valid) of cells, whether they were ever drawn or not."""
        points = features(cells, agents)
        logit = points @ np.array(self.weights)
        variance = np.einsum("ni,ij,nj->n", points, np.array(self.covariance), points)
        mean = _logistic(logit / np.sqrt(1 + PROBIT * variance))
        slope = _logistic(logit) * (1 - _logistic(logit))
        return Prediction(mean, np.minimum(slope * np.sqrt(variance), 0.5))

    def sampled(self, cells: Sequence[Cell], agents: Sequence[int], rng: np.random.Generator, count: int) -> np.ndarray:
        """P(valid) of cells under `count` weights drawn from the posterior, float [count, N]."""
        weights = rng.multivariate_normal(np.array(self.weights), np.array(self.covariance), count, method="eigh")
        return _logistic(weights @ features(cells, agents).T)

    def value(self, success: np.ndarray) -> np.ndarray:
        """What boards of cells are worth whose P(valid) is `success`: their expected learnability, or their regret."""
        return 1 - success if self.objective == "regret" else self.learnability(success)

    def learnability(self, success: np.ndarray) -> np.ndarray:
        """The expected p (1 - p) of boards of cells whose P(valid) is `success`."""
        return self.evenness * success * (1 - success)


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))
