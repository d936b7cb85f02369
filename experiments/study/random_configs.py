"""Random configs: one of a study's runs trains on each, or all runs of a seed begin with its own."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import can_draw_for
from lakewright.core_jax.support import Count, HoleRatio, Natural, Share
from lakewright.engineer.guard import Reachable
from lakewright.experiments.loop.settings import RunSettings


class Configs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Random configs. As arms of one stage each, they show whether the trial's score predicts the gain in training.

    data_ratios are uniform on the simplex, hole and wait ratios uniform from the lists, all drawable.
    """

    count: Count = 24
    seed: Natural = 0
    hole_ratios: tuple[HoleRatio, ...] = (0.0, 0.1, 0.2, 0.3, 0.4)
    wait_ratios: tuple[Share, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)


def random_configs(chosen: Configs, start: RunSettings) -> Iterator[tuple[str, EnvConfig]]:
    """The configs by name. Raises InputError where a size has no boards at the given ratios."""
    rng = np.random.default_rng(chosen.seed)
    for number in range(chosen.count):
        yield f"config-{number:02d}", _random_config(chosen, start, rng)


def _random_config(chosen: Configs, start: RunSettings, rng: np.random.Generator) -> EnvConfig:
    env, reachable = start.env, can_draw_for(start.teams)
    shares = rng.dirichlet(np.ones(len(env.sizes))).round(3)
    shares[-1] = round(1 - float(shares[:-1].sum()), 3)
    cells = {}
    for size, share in zip(env.sizes, shares.tolist(), strict=True):
        hole, wait = _draw_ratios(chosen, size, env.agents, reachable, rng)
        cells[size] = SizeConfig(share, hole, wait)
    return env.replace(cells)


def _draw_ratios(
    chosen: Configs, size: int, agents: int, reachable: Reachable, rng: np.random.Generator
) -> tuple[float, float]:
    pairs: Sequence[tuple[float, float]] = [(hole, wait) for hole in chosen.hole_ratios for wait in chosen.wait_ratios]
    for place in rng.permutation(len(pairs)):
        hole, wait = pairs[place]
        if all(reachable(size, agents, hole, forced) for forced, share in ((True, wait), (False, 1 - wait)) if share):
            return hole, wait
    raise InputError(f"configs: no boards of {size}x{size} can be drawn at these ratios; give others")
