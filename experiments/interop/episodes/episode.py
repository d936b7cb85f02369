"""One episode on a board of a pool, played by the core's simulator; what single environments are made of."""

import jax
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake import Observation, reset_to, step_env
from lakewright.experiments.interop.episodes.pictures import MODES, as_pixels, as_text
from lakewright.experiments.interop.episodes.pools import BoardPool

_RESET, _STEP = jax.jit(reset_to), jax.jit(step_env)


class Episode:
    """The state of play. render_mode: `ansi`, `rgb_array`, or none."""

    def __init__(self, pool: BoardPool, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in MODES:
            raise InputError(f"render_mode is {render_mode!r:.60}; choose from {', '.join(MODES)}")
        self._pool, self._mode = pool, render_mode
        self._state = None

    def begin(self, board: int) -> tuple[Observation, dict[str, int | bool]]:
        """The first observation on this board of the pool, and its certified optima. Raises InputError beyond them."""
        if not 0 <= board < self._pool.boards:
            raise InputError(f"options: board is {board}; choose 0 to {self._pool.boards - 1}")
        observation, self._state = _RESET(jax.tree.map(lambda field: field[board], self._pool.params.pool))
        labels = self._pool.labels
        optima = {
            "board": board,
            "makespan": int(labels.makespan[board]),
            "sum_of_costs": int(labels.sum_of_costs[board]),
            "wait_required": bool(labels.wait_required[board]),
        }
        return observation, optima

    def move(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict]:
        """A joint move: observation, the team's reward, whether it terminated, whether it was truncated, and info."""
        if self._state is None:
            raise InputError("step: no episode has begun; call reset first")
        observation, self._state, reward, _, info = _STEP(self._state, np.asarray(action, np.int32), self._pool.params)
        return observation, float(reward), bool(info["terminated"]), bool(info["truncated"]), info

    def picture(self) -> str | np.ndarray | None:
        """The board as it stands, in the render mode."""
        if self._mode is None:
            return None
        if self._state is None:
            raise InputError("render: no episode has begun; call reset first")
        board = self._state.board
        parts = np.asarray(board.holes), np.asarray(self._state.positions), np.asarray(board.goals)
        return as_text(*parts) if self._mode == "ansi" else as_pixels(*parts)
