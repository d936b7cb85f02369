"""What a config is worth by the model: the learnability, or the regret, that it expects of its boards."""

from collections import defaultdict

import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig, with_teams
from lakewright.engineer.curriculum_cells import Cell, weights_of
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.item_response import DifficultyModel

SAMPLES = 512
SEED = 0


class Worth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The expected mean p (1 - p), or 1 - p, over a config's boards, and how uncertain the model is of it."""

    mean: float
    deviation: float


def worth_of(model: DifficultyModel, config: EnvConfig, current: EnvConfig | None = None, teams: tuple = ()) -> Worth:
    """The worth of a config, or with `current` how much more it is worth than that; equal chances for all configs."""
    cells, agents, shares = _shares(config, teams)
    if current is not None:
        more, others, less = _shares(current, teams)
        cells, agents, shares = cells + more, agents + others, np.concatenate([shares, -less])
    values = _values(model, cells, agents) @ shares
    return Worth(float(values.mean()), float(values.std()))


def diminishing_worth_of(known: Forecast, config: EnvConfig, power: float, teams: tuple = ()) -> float:
    """sum_c v_c h_c^(1/power) q_c^(1 - 1/power): the more of the data q_c a cell has, the less more of them adds.

    c are sizes with a forced wait and without, v_c is what the model expects of the config's boards there, and h_c the
    share of the held-out boards. The best q_c are in proportion to h_c v_c^power, the rule of the teacher `difficulty`;
    the larger the power (more than 1), the nearer is this to `worth_of`, which is linear in the data. (A sum of
    isoelastic utilities: Atkinson 1970.)
    """
    cells, agents, shares = _shares(config, teams)
    values = _values(known.model, cells, agents).mean(axis=0)
    kinds = defaultdict[tuple[int, bool], float](float)
    for part in known.held_out:
        kinds[part.cell.size, part.cell.forced] += part.share
    parts = len(with_teams(config, teams))
    held_out = np.array([kinds[cell.size, cell.forced] / parts for cell in cells])
    return float(values @ (held_out ** (1 / power) * shares ** (1 - 1 / power)))


def _values(model: DifficultyModel, cells: list[Cell], agents: list[int]) -> np.ndarray:
    """What boards of the cells are worth, float [SAMPLES, cells]; the same draws of the model for all configs."""
    return model.value(model.sampled(cells, agents, np.random.default_rng(SEED), SAMPLES))


def _shares(config: EnvConfig, teams: tuple) -> tuple[list[Cell], list[int], np.ndarray]:
    parts = with_teams(config, teams)
    found = [(cell, part.agents, share / len(parts)) for part in parts for cell, share in weights_of(part).items()]
    cells, agents, shares = zip(*found, strict=True)
    return list(cells), list(agents), np.array(shares)
