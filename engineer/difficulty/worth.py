"""What a config is worth by the model: the learnability, or the regret, that it expects of its boards."""

import msgspec
import numpy as np

from core_jax.config import EnvConfig, with_teams
from engineer.curriculum_cells import Cell, weights_of
from engineer.difficulty.item_response import DifficultyModel

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
    values = model.value(model.sampled(cells, agents, np.random.default_rng(SEED), SAMPLES)) @ shares
    return Worth(float(values.mean()), float(values.std()))


def _shares(config: EnvConfig, teams: tuple) -> tuple[list[Cell], list[int], np.ndarray]:
    parts = with_teams(config, teams)
    found = [(cell, part.agents, share / len(parts)) for part in parts for cell, share in weights_of(part).items()]
    cells, agents, shares = zip(*found, strict=True)
    return list(cells), list(agents), np.array(shares)
