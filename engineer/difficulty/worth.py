"""The worth of a design by the model: the learnability, or the regret, that it expects of its problems."""

from collections import defaultdict
from collections.abc import Mapping

import msgspec
import numpy as np

from lakewright.engineer.cells import Cell, Stratum, Value
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import DifficultyModel
from lakewright.engineer.space import DesignSpace

SAMPLES = 512
SEED = 0
Mix = Mapping[Cell, float]
"""The shares of the cells that a design's problems are of, with their givens: `Environment.cells`."""


class Worth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The expected mean p (1 - p), or 1 - p, over a design's problems, and how uncertain the model is of it."""

    mean: float
    deviation: float


def estimate_worth(model: DifficultyModel, mix: Mix, space: DesignSpace, current: Mix | None = None) -> Worth:
    """The worth of a mix of cells, or with `current` its lead over that mix; both are valued by the same draws.

    Args:
        model: the posterior.
        mix: the shares of the design's cells.
        space: the design space.
        current: another mix.
    """
    cells, shares = list(mix), np.array(list(mix.values()))
    # One draw of the model prices both designs, so what is common to them cancels and only the difference is noisy.
    if current is not None:
        cells, shares = cells + list(current), np.concatenate([shares, -np.array(list(current.values()))])
    values = _sample_values(model, cells, space) @ shares
    return Worth(float(values.mean()), float(values.std()))


def estimate_diminishing_worth(known: Forecast, mix: Mix, power: float, space: DesignSpace) -> float:
    """sum_c v_c h_c^(1/power) q_c^(1 - 1/power): the larger a cell's share q_c of the data, the less more data add.

    Args:
        known: the forecast.
        mix: the cells of the design with their shares.
        power: see below.
        space: the design space.

    c are strata with each combination of traits, v_c is what the model expects of the mix's problems there, and h_c the
    share of the held-out problems. The best q_c are in proportion to h_c v_c^power, the rule of the teacher
    `difficulty`; the larger the power (more than 1), the nearer is this to `estimate_worth`, which is linear in the
    data. (A sum of isoelastic utilities: Atkinson 1970.)
    """
    cells, shares = list(mix), np.array(list(mix.values()))
    values = _sample_values(known.model, cells, space).mean(axis=0)
    kinds = defaultdict[tuple[Stratum, tuple[Value, ...]], float](float)
    for part in known.held_out:
        kinds[_kind_of(part.cell, space)] += part.share
    # Held-out cells have no givens, and a mix has each cell once per value of the givens: the share of a kind is split
    # evenly among them.
    parts = max(1, len({cell.given for cell in cells}))
    held_out = np.array([kinds[_kind_of(cell, space)] / parts for cell in cells])
    return float(values @ (held_out ** (1 / power) * shares ** (1 - 1 / power)))


def _kind_of(cell: Cell, space: DesignSpace) -> tuple[Stratum, tuple[Value, ...]]:
    return cell.stratum, tuple(cell.values[place] for place in space.traits)


def _sample_values(model: DifficultyModel, cells: list[Cell], space: DesignSpace) -> np.ndarray:
    """The worth of problems of the cells, float [SAMPLES, cells]; the same draws of the model for all designs."""
    return model.value(model.sample(cells, space, np.random.default_rng(SEED), SAMPLES))
