"""The posterior of version 0.2: one logistic regression of P(valid) on features of all cells."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from lakewright.engineer.cells import Cell
from lakewright.engineer.random_generators import draw_normal
from lakewright.engineer.space import DesignSpace

WIDE = 3.0  # the prior deviation of main effects, divided by the deviation of interactions
OWN_SPREAD = 2.0  # the prior's deviation, in logits, of the own effects of strata that have no order


class Regression(NamedTuple):
    """The posterior N(weights, covariance) of the weights of `compute_features` (Laplace's approximation).

    weights: float [F]. covariance: float [F, F]. by_size: the prior of each stratum's own effects.
    """

    weights: np.ndarray
    covariance: np.ndarray
    by_size: float
    leverage: Sequence[float] = ()
    evenness: Sequence[float] = ()
    graded: Sequence[float] | msgspec.UnsetType = msgspec.UNSET

    def predict_logits(
        self, cells: Sequence[Cell], space: DesignSpace, *, sampled: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the logit of P(valid) of cells that have their givens, float [N] each.

        sampled: not used, because a regression does not tell sampled answers from others.
        """
        points = compute_features(cells, space, self.by_size)
        return points @ self.weights, np.einsum("ni,ij,nj->n", points, self.covariance, points)

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Weights drawn from the posterior, float [count, F]. rng: consumed."""
        return draw_normal(rng, self.weights, self.covariance, count)

    def find_logits(self, drawn: np.ndarray, cells: Sequence[Cell], space: DesignSpace) -> np.ndarray:
        """The logits of P(valid) of cells, float [count, N], under what `draw` drew."""
        return drawn @ compute_features(cells, space, self.by_size).T


def compute_features(cells: Sequence[Cell], space: DesignSpace, by_size: float = 0.0) -> np.ndarray:
    """float [N, F] of cells that have their givens; each weight has the prior N(0, 1).

    The axes, each from about -1 to 1, are the scale of the stratum, if strata have an order, then the knobs, traits
    being -1 or 1, then the givens. Features are 1 and the axes, times WIDE; the squares of the scale and the levels;
    and the products of two of the axes that are not givens. With `by_size`, and always if strata have no order:
    for each stratum of the space [stratum is it], then for each trait [stratum is it] x trait, times `by_size`,
    which is the prior's deviation of these effects.
    """
    axes, squares = _scale_axes(cells, space)
    given = np.array([cell.given for cell in cells], float).reshape(len(cells), len(space.givens))
    givens = [(given[:, place] - one.middle) / one.half for place, one in enumerate(space.givens)]
    main = WIDE * np.stack([np.ones(len(cells)), *axes, *givens])
    columns = np.stack([*main, *squares, *(a * b for a, b in itertools.combinations(axes, 2))]).T
    # Without an order there is no curve over the strata, so each needs effects of its own.
    deviation = by_size or (0.0 if space.ranked else OWN_SPREAD)
    if not deviation:
        return columns
    ranks = np.array([space.ranks[cell.stratum] for cell in cells], int)
    own = deviation * (ranks[:, None] == np.arange(len(space.strata)))
    traits = (axes[space.ranked + place] for place in space.traits)
    return np.concatenate([columns, own, *(own * trait[:, None] for trait in traits)], axis=1)


def count_features(space: DesignSpace, by_size: float = 0.0) -> int:
    """The number of features."""
    return compute_features([], space, by_size).shape[1]


def _scale_axes(cells: Sequence[Cell], space: DesignSpace) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The axes of scale and knobs, and the squares of scale and levels, float [N] each."""
    axes = [np.array([space.scale(cell.stratum) for cell in cells], float)] if space.ranked else []
    squares = [axis**2 for axis in axes]
    for place, knob in enumerate(space.knobs):
        values = np.array([cell.values[place] for cell in cells], float)
        # A knob with a single value has no span, and is at -1 everywhere.
        low, span = (0.0, 1.0) if knob.trait else (knob.low, knob.span or 1.0)
        axes.append(2 * (values - low) / span - 1)
        squares += [] if knob.trait else [axes[-1] ** 2]
    return axes, squares
