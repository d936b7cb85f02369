"""The features of a cell for the difficulty model: its axes, their squares and their products."""

import itertools
from collections.abc import Sequence

import numpy as np

from lakewright.engineer.cells import Cell
from lakewright.engineer.space import DesignSpace

WIDE = 3.0  # how many times wider the prior of the main effects is than that of interactions
OWN = 2.0  # the prior's deviation, in logits, of the own effects of strata that have no order


def compute_features(cells: Sequence[Cell], space: DesignSpace, by_stratum: float = 0.0) -> np.ndarray:
    """float [N, F] of cells that have their givens; each weight has the prior N(0, 1).

    The axes, each from about -1 to 1, are the scale of the stratum, where strata have an order, then the knobs, traits
    being -1 or 1, then the givens. Features are 1 and the axes, times WIDE; the squares of the scale and the levels;
    and the products of two of the axes that are not givens. With `by_stratum`, and always where strata have no order:
    for each stratum of the space [stratum is it], then for each trait [stratum is it] x trait, times `by_stratum`,
    which is the prior's deviation of these effects.
    """
    axes, squared = _axes(cells, space)
    given = np.array([cell.given for cell in cells], float).reshape(len(cells), len(space.givens))
    givens = [(given[:, place] - one.middle) / one.half for place, one in enumerate(space.givens)]
    main = WIDE * np.stack([np.ones(len(cells)), *axes, *givens])
    squares = [axis**2 for axis, square in zip(axes, squared, strict=True) if square]
    found = np.concatenate(
        [main, _rows([*squares, *(a * b for a, b in itertools.combinations(axes, 2))], len(cells))]
    ).T
    deviation = by_stratum or (0.0 if space.ranked else OWN)
    if not deviation:
        return found
    ranks = np.array([space.ranks[cell.stratum] for cell in cells], int)
    own = deviation * (ranks[:, None] == np.arange(len(space.strata)))
    traits = (axes[space.ranked + place] for place in space.traits)
    return np.concatenate([found, own, *(own * trait[:, None] for trait in traits)], axis=1)


def count_features(space: DesignSpace, by_stratum: float = 0.0) -> int:
    """The number of features."""
    return compute_features([], space, by_stratum).shape[1]


def _axes(cells: Sequence[Cell], space: DesignSpace) -> tuple[list[np.ndarray], list[bool]]:
    """The axes of scale and knobs, float [N] each, and whether their squares are features."""
    axes, squared = [], []
    if space.ranked:
        axes.append(np.array([space.scale(cell.stratum) for cell in cells], float))
        squared.append(True)
    for place, knob in enumerate(space.knobs):
        values = np.array([cell.values[place] for cell in cells], float)
        low, span = (0.0, 1.0) if knob.trait else (knob.low, knob.span or 1.0)
        axes.append(2 * (values - low) / span - 1)
        squared.append(not knob.trait)
    return axes, squared


def _rows(rows: Sequence[np.ndarray], count: int) -> np.ndarray:
    return np.stack(rows) if rows else np.zeros((0, count))
