"""Many lakes at once for controllers of whole teams: Gymnasium's vector environment over one vmapped program."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake import BoardObservation, EnvState, observe, reset, reset_to, step
from lakewright.core_jax.support import make_jax_key, stated_settings
from lakewright.core_jax.types import FAILURE_NAMES
from lakewright.experiments.boards.episodes.episode import check_board, read_moves, read_options
from lakewright.experiments.boards.episodes.pictures import MODES, as_pixels, as_text
from lakewright.experiments.boards.episodes.pools import board_pool
from lakewright.experiments.boards.gym.team_env import Arrays, as_arrays, team_space

METADATA = {"render_modes": list(MODES), "render_fps": 4, "autoreset_mode": AutoresetMode.SAME_STEP}
_RESET = jax.jit(jax.vmap(reset, (0, None)))
_RESET_TO = jax.jit(lambda pool, boards: jax.vmap(reset_to)(jax.tree.map(lambda field: field[boards], pool)))
_OBSERVE = jax.jit(jax.vmap(observe))
_STEP = jax.jit(jax.vmap(step, (0, 0, 0, None)))


class TeamVectorEnv(VectorEnv[Arrays, np.ndarray, np.ndarray]):
    """`num_envs` environments as `TeamEnv`, which begin a new episode within the step that ends one.

    `info` then has `final_obs`, the last observation of the episode that ended, if the mask `_final_obs` is set.
    They are one program of JAX, which does not work in a process that was forked after JAX had started.
    """

    metadata = METADATA

    @stated_settings()
    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **options: Any) -> None:
        if num_envs < 1:
            raise InputError(f"num_envs is {num_envs}; give at least 1")
        if render_mode is not None and render_mode not in MODES:
            raise InputError(f"render_mode is {render_mode!r:.60}; choose from {', '.join(MODES)}")
        pool = board_pool(**options)
        self._params, self._boards = jax.tree.map(jnp.asarray, pool.params), pool.boards
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_action_space = spaces.MultiDiscrete([5] * pool.agents)
        self.single_observation_space = team_space(pool)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._key: jax.Array | None = None
        self._state: EnvState | None = None

    @stated_settings()
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """The first observations; without a seed the environments continue their random stream.

        options: `board`, the number of a board for all environments, or one for each; `reset_mask`, bool [E], which
        environments begin an episode, while the others go on. Raises InputError on others, or values out of range.
        """
        given = read_options(options, ("board", "reset_mask"))
        mask = self._read_mask(given["reset_mask"]) if "reset_mask" in given else None
        boards = given.get("board")
        if boards is not None:
            boards = self._read_boards(boards)
        if seed is not None or self._key is None:
            self._key = make_jax_key(int(self.np_random.integers(2**31)) if seed is None else _check_seed(seed))
        if boards is None:
            observation, state = _RESET(self._keys(), self._params)
        else:
            observation, state = _RESET_TO(self._params.pool, boards)
        if mask is not None:
            observation, state = self._reset_some(mask, state)
        self._state = state
        return as_arrays(observation), {}

    def _reset_some(self, mask: np.ndarray, state: EnvState) -> tuple[BoardObservation, EnvState]:
        """New states where the mask, bool [E], is set, and the present ones elsewhere."""

        def pick(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        state = jax.tree.map(pick, state, self._state)
        return _OBSERVE(state), state

    def _read_mask(self, mask: Any) -> np.ndarray:
        found = np.asarray(mask)
        if found.dtype != bool or found.shape != (self.num_envs,) or not found.any():
            raise InputError(
                f"options: reset_mask is {mask!r:.60}; give bool [{self.num_envs}], with at least one True"
            )
        if self._state is None:
            raise InputError("options: reset_mask, but no episode has begun; call reset without it first")
        return found

    def _read_boards(self, boards: Any) -> np.ndarray:
        """The number of the board of each environment, int32 [E]."""
        several = list(boards) if isinstance(boards, list | tuple | np.ndarray) else [boards] * self.num_envs
        if len(several) != self.num_envs:
            raise InputError(
                f"options: board has {len(several)} numbers for {self.num_envs} environments; give each one"
            )
        return np.array([check_board(board, self._boards) for board in several], np.int32)

    @stated_settings()
    def step(self, actions: np.ndarray) -> tuple[Arrays, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """A joint move in each environment; in `info` `failure` and `agent` int [E], `failure_name`, `at_goal`."""
        if self._state is None:
            raise InputError("step: no episode has begun; call reset first")
        moves = read_moves(actions, self.action_space.shape)  # type: ignore[arg-type]
        observation, self._state, reward, done, found = _STEP(self._keys(), self._state, moves, self._params)
        info: dict[str, Any] = {name: np.array(found[name]) for name in ("failure", "agent", "at_goal")}
        info["failure_name"] = np.array(FAILURE_NAMES)[info["failure"]]
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


def _check_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 32:
        raise InputError(f"seed is {seed!r:.60}; give one seed for all environments, 0 to {(1 << 32) - 1}")
    return int(seed)
