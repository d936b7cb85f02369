"""Policies whose chances are known: cells of the lake with a logit each, problems that differ within a cell."""

from typing import NamedTuple

import numpy as np

from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty import (
    DifficultyModel,
    DifficultySettings,
    Mix,
    Objective,
    Observation,
    compute_features,
    fit_regression,
    make_forecast,
)
from lakewright.experiments.environments.lake import lake_space

SPACE = lake_space()
CELLS = [Cell(size, (hole, forced), (2,)) for size in (3, 5, 8) for hole in (0.1, 0.3) for forced in (False, True)]
FEATURES = compute_features(CELLS, SPACE)
DESIGN = SPACE.uniform()
GROUP = 8  # answers of a group in training
DEVIATES = np.linspace(-5, 5, 201)
WEIGHTS = np.exp(-(DEVIATES**2) / 2) / np.exp(-(DEVIATES**2) / 2).sum()


class Policy(NamedTuple):
    """The logit of each cell, float [CELLS]; that of a problem is `apart` standard normal deviates away from it."""

    logits: np.ndarray
    apart: float

    def draw_chances(self, rng: np.random.Generator, place: int, count: int) -> np.ndarray:
        """P(valid) of so many problems of a cell, float [count]."""
        return logistic(self.logits[place] + self.apart * rng.standard_normal(count))

    def success(self) -> np.ndarray:
        """P(valid) of a problem of each cell, float [CELLS]."""
        return self._each() @ WEIGHTS

    def worth(self, objective: Objective) -> np.ndarray:
        """What a problem of each cell is worth on average, float [CELLS]."""
        each = self._each()
        return (1 - each if objective == "regret" else each * (1 - each)) @ WEIGHTS

    def _each(self) -> np.ndarray:
        return logistic(self.logits[:, None] + self.apart * DEVIATES)


def draw_policy(rng: np.random.Generator, ease: float = 0.0, scale: float = 1.0, apart: float = 1.0) -> Policy:
    """A policy from the prior of the difficulty model, its weights times `scale`, all logits moved by `ease`."""
    return Policy(ease + FEATURES @ (scale * rng.standard_normal(FEATURES.shape[1])), apart)


def draw_mix(rng: np.random.Generator, near: Mix | None = None, far: float = 1.0) -> Mix:
    """A random mix of the cells; with `near` a share `far` of the way from it."""
    shares = dict(zip(CELLS, rng.dirichlet(np.ones(len(CELLS))).tolist(), strict=True))
    return shares if near is None else {cell: (1 - far) * near[cell] + far * shares[cell] for cell in CELLS}


def fit_policy(rng: np.random.Generator, policy: Policy, groups: Mix, settings: DifficultySettings) -> DifficultyModel:
    """The difficulty model of a policy after so many groups of each cell, rounded, and before any training on them."""
    found = []
    for place, cell in enumerate(CELLS):
        if count := round(groups.get(cell, 0)):
            valid = rng.binomial(GROUP, policy.draw_chances(rng, place, count))
            variance = (valid * (GROUP - valid)).sum() / (GROUP * (GROUP - 1))
            sums = count, float(valid.sum() / GROUP), float(variance)
            found.append(Observation(cell, *sums, answers=count * GROUP, tried=True))
    if settings.model == "regression":
        return fit_regression(found, settings, SPACE)
    return make_forecast(DESIGN, found, [], settings, SPACE).model


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))
