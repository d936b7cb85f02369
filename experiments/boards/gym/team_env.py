"""The lake for one controller of the whole team, as a Gymnasium environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from lakewright.core_jax.lake import BoardObservation
from lakewright.core_jax.types import FAILURE_NAMES
from lakewright.experiments.boards.episodes.episode import BoardEpisode, read_options
from lakewright.experiments.boards.episodes.pictures import MODES
from lakewright.experiments.boards.episodes.pools import BoardPool, board_pool

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


def as_arrays(observation: BoardObservation) -> Arrays:
    """The observation as new arrays, which nobody else holds; with a leading axis, of as many environments."""
    return {
        "planes": np.array(observation.planes, np.int8),
        "positions": np.array(observation.positions),
        "goals": np.array(observation.goals),
        "time": np.array(observation.time),
    }


def as_info(info: dict[str, Any]) -> dict[str, Any]:
    """The rest of a step's result: `failure` and `agent` as numbers, `failure_name`, `at_goal` bool [K]."""
    failure, agent = int(info["failure"]), int(info["agent"])
    named = FAILURE_NAMES[failure]
    return {"failure": failure, "failure_name": named, "agent": agent, "at_goal": np.array(info["at_goal"])}


class TeamEnv(gymnasium.Env[Arrays, np.ndarray]):
    """An action is one joint move, int [K]: 0 up, 1 down, 2 left, 3 right, 4 wait.

    The reward is 1 for the move after which all agents are at their goals, else 0. An episode terminates there, or
    where a rule is broken, upon which nobody moves; it is truncated after `step_limit` moves. Each episode is on a
    board of a pool of `boards` certified ones, drawn by `pool_seed`; `reset` chooses one by its own seed, or takes
    `options={"board": number}`, and returns its optimal makespan and sum of costs. options: as `PoolOptions`. It works
    in processes that are forked, as `AsyncVectorEnv` does, if all have the same options: the first draws the boards.
    """

    metadata: dict[str, Any] = {"render_modes": list(MODES), "render_fps": 4}  # noqa: RUF012, as the base class has it

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        pool = board_pool(**options)
        self._boards = pool.boards
        self._episode = BoardEpisode(pool, render_mode)
        self.render_mode = render_mode
        self.action_space = spaces.MultiDiscrete([5] * pool.agents)
        self.observation_space: spaces.Space[Arrays] = team_space(pool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """The first observation of an episode, and its board's certified optima."""
        super().reset(seed=seed)
        chosen = read_options(options).get("board")
        board = int(self.np_random.integers(self._boards)) if chosen is None else chosen
        observation, optima = self._episode.begin(board)
        return as_arrays(observation), optima

    def step(self, action: np.ndarray) -> tuple[Arrays, float, bool, bool, dict[str, Any]]:
        """One joint move; `info` has `failure`, a number of `Failure`, its `failure_name`, `agent` and `at_goal`."""
        observation, reward, terminated, truncated, info = self._episode.move(action)
        return as_arrays(observation), reward, terminated, truncated, as_info(info)

    def render(self) -> Any:
        """Text or pixels of the board, by the render mode."""
        return self._episode.picture()
