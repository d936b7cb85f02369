"""Many lakes at once for controllers of whole teams: Gymnasium's vector environment over one vmapped program."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake import EnvState, reset, step
from lakewright.experiments.interop.environments.team_env import Arrays, as_arrays, team_space
from lakewright.experiments.interop.episodes.pictures import MODES, as_pixels, as_text
from lakewright.experiments.interop.episodes.pools import board_pool

METADATA = {"render_modes": list(MODES), "render_fps": 4, "autoreset_mode": AutoresetMode.SAME_STEP}
_RESET = jax.jit(jax.vmap(reset, (0, None)))
_STEP = jax.jit(jax.vmap(step, (0, 0, 0, None)))


class TeamVectorEnv(VectorEnv[Arrays, np.ndarray, np.ndarray]):
    """`num_envs` environments as `TeamEnv`, which begin a new episode within the step that ends one.

    `info` then has `final_obs`, the last observation of the episode that ended, where the mask `_final_obs` is set.
    """

    metadata = METADATA

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **options: Any) -> None:
        if num_envs < 1:
            raise InputError(f"num_envs is {num_envs}; give at least 1")
        if render_mode is not None and render_mode not in MODES:
            raise InputError(f"render_mode is {render_mode!r:.60}; choose from {', '.join(MODES)}")
        pool = board_pool(**options)
        self._params = pool.params
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_action_space = spaces.MultiDiscrete([5] * pool.agents)
        self.single_observation_space = team_space(pool)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._key: jax.Array | None = None
        self._state: EnvState | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """The first observations; without a seed the environments continue their random stream."""
        if seed is not None or self._key is None:
            self._key = jax.random.key(int(self.np_random.integers(2**31)) if seed is None else seed)
        observation, self._state = _RESET(self._keys(), self._params)
        return as_arrays(observation), {}

    def step(self, actions: np.ndarray) -> tuple[Arrays, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """A joint move in each environment; `info` has `failure` and `agent` int [E] and `at_goal` bool [E, K]."""
        if self._state is None:
            raise InputError("step: no episode has begun; call reset first")
        moves = jnp.asarray(np.asarray(actions, np.int32))
        observation, self._state, reward, done, found = _STEP(self._keys(), self._state, moves, self._params)
        info: dict[str, Any] = {name: np.array(found[name]) for name in ("failure", "agent", "at_goal")}
        if (ended := np.array(done)).any():
            info |= {"final_obs": as_arrays(found["final_observation"]), "_final_obs": ended}
        rewards = np.array(reward, np.float64)
        return as_arrays(observation), rewards, np.array(found["terminated"]), np.array(found["truncated"]), info

    def render(self) -> tuple[Any, ...] | None:
        """Text or pixels of each board, by the render mode."""
        if self.render_mode is None or self._state is None:
            return None
        draw = as_text if self.render_mode == "ansi" else as_pixels
        board = self._state.board
        parts = np.asarray(board.holes), np.asarray(self._state.positions), np.asarray(board.goals)
        return tuple(draw(*one) for one in zip(*parts, strict=True))

    def _keys(self) -> jax.Array:
        """New keys, one for each environment."""
        assert self._key is not None
        self._key, used = jax.random.split(self._key)
        return jax.random.split(used, self.num_envs)
