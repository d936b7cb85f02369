"""Observations of a team as Gymnasium has them: a dictionary of NumPy arrays, and the space they are from."""

from typing import Any

import numpy as np
from gymnasium import spaces

from lakewright.core_jax.lake import Observation
from lakewright.experiments.interop.episodes.pools import BoardPool

Arrays = dict[str, np.ndarray]


def team_space(pool: BoardPool) -> spaces.Space[Any]:
    """The space of `as_arrays`: planes int8 [n, n, 1 + 2K], positions and goals int32 [K, 2], time int32 []."""
    size, agents = pool.size, pool.agents
    cells = spaces.Box(0, size - 1, (agents, 2), np.int32)
    return spaces.Dict(
        {
            "planes": spaces.Box(0, 1, (size, size, 1 + 2 * agents), np.int8),
            "positions": cells,
            "goals": spaces.Box(0, size - 1, (agents, 2), np.int32),
            "time": spaces.Box(0, int(pool.params.step_limit), (), np.int32),
        }
    )


def as_arrays(observation: Observation) -> Arrays:
    """The observation as new arrays, which nobody else holds; with a leading axis, of as many environments."""
    return {
        "planes": np.array(observation.planes, np.int8),
        "positions": np.array(observation.positions),
        "goals": np.array(observation.goals),
        "time": np.array(observation.time),
    }


def as_info(info: dict[str, Any]) -> dict[str, Any]:
    """The rest of a step's result: `failure` and `agent` as numbers, `at_goal` bool [K]."""
    return {"failure": int(info["failure"]), "agent": int(info["agent"]), "at_goal": np.array(info["at_goal"])}
