"""One episode on a board of a pool, by the rules of the core's simulator; what single environments are made of.

It is played in NumPy: a step takes microseconds, and works in processes that were forked after JAX had started.
"""

import itertools
from typing import Any

import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake import BoardObservation
from lakewright.core_jax.terms import DELTAS, PAD, WAIT, Failure
from lakewright.experiments.boards.episodes.pictures import MODES, as_pixels, as_text
from lakewright.experiments.boards.episodes.pools import BoardPool

Square = tuple[int, int]


class BoardEpisode:
    """The state of play. render_mode: `ansi`, `rgb_array`, or None."""

    def __init__(self, pool: BoardPool, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in MODES:
            raise InputError(f"render_mode is {render_mode!r:.60}; choose from {', '.join(MODES)}")
        self._pool, self._mode = pool, render_mode
        self._cells: list[Square] | None = None  # of the agents; None before the first episode
        self._time, self._done = 0, False

    def begin(self, board: int) -> tuple[BoardObservation, dict[str, int | bool]]:
        """The first observation on this board of the pool, and its certified optima. Raises InputError beyond them."""
        board = check_board(board, self._pool.boards)
        boards, labels = self._pool.params.pool, self._pool.labels
        self._holes, self._goals = np.asarray(boards.holes[board]), np.asarray(boards.goals[board])
        self._cells = _as_cells(np.asarray(boards.starts[board]))
        self._ends = _as_cells(self._goals)
        self._time, self._done = 0, False
        optima = {
            "board": board,
            "makespan": int(labels.makespan[board]),
            "sum_of_costs": int(labels.sum_of_costs[board]),
            "wait_required": bool(labels.wait_required[board]),
        }
        return self._observe(self._cells), optima

    def move(self, action: np.ndarray) -> tuple[BoardObservation, float, bool, bool, dict[str, Any]]:
        """A joint move: observation, the team's reward, whether it terminated, whether it was truncated, and info.

        Like `core_jax.lake.step_env`: nobody moves if a rule is broken, and nothing changes an episode that has ended.
        """
        if self._cells is None:
            raise InputError("step: no episode has begun; call reset first")
        moves = read_moves(action, (len(self._cells),)).tolist()
        failure, agent, solved = Failure.NONE, -1, False
        if not self._done:
            targets = [self._move_cell(cell, move) for cell, move in zip(self._cells, moves, strict=True)]
            failure, agent = self._find_failure(self._cells, targets, moves)
            if failure == Failure.NONE:
                self._cells, solved = targets, targets == self._ends
        terminated = solved or failure != Failure.NONE
        self._time += not self._done
        truncated = not (self._done or terminated) and self._time >= int(self._pool.params.step_limit)
        self._done = self._done or terminated or truncated
        at_goal = np.array([cell == end for cell, end in zip(self._cells, self._ends, strict=True)])
        info = {"failure": int(failure), "agent": agent, "at_goal": at_goal}
        return self._observe(self._cells), float(solved), terminated, truncated, info

    def picture(self) -> str | np.ndarray | None:
        """The board as it stands, in the render mode."""
        if self._mode is None:
            return None
        if self._cells is None:
            raise InputError("render: no episode has begun; call reset first")
        parts = self._holes, np.array(self._cells), self._goals
        return as_text(*parts) if self._mode == "ansi" else as_pixels(*parts)

    def _observe(self, cells: list[Square]) -> BoardObservation:
        size, positions = len(self._holes), np.array(cells, np.int32)
        places = np.concatenate([positions, self._goals])
        planes = np.zeros((size, size, 1 + len(places)), bool)
        planes[..., 0] = self._holes
        planes[places[:, 0], places[:, 1], 1 + np.arange(len(places))] = True
        return BoardObservation(planes, positions, self._goals, np.int32(self._time))  # type: ignore[arg-type]

    def _move_cell(self, cell: Square, move: int) -> Square:
        row, column = DELTAS[move if 0 <= move <= WAIT else WAIT]
        return cell[0] + row, cell[1] + column

    def _find_failure(self, cells: list[Square], targets: list[Square], moves: list[int]) -> tuple[Failure, int]:
        """The first failure of a step, by its kind and then by the agent; agent -1 without a failure."""
        size = len(self._holes)
        for agent, ((row, column), move) in enumerate(zip(targets, moves, strict=True)):
            if not (0 <= row < size and 0 <= column < size and PAD <= move <= WAIT):
                return Failure.ILLEGAL_MOVE, agent
        for agent, cell in enumerate(targets):
            if self._holes[cell]:
                return Failure.HOLE, agent
        pairs = list(itertools.combinations(range(len(cells)), 2))
        for one, other in pairs:
            if targets[one] == targets[other]:
                return Failure.VERTEX_CONFLICT, one
        for one, other in pairs:
            if targets[one] == cells[other] and targets[other] == cells[one]:
                return Failure.SWAP_CONFLICT, one
        return Failure.NONE, -1


def check_board(board: Any, boards: int) -> int:
    """The number of a board. Raises InputError unless it is 0 to `boards` - 1."""
    if isinstance(board, bool | np.bool_) or not isinstance(board, int | np.integer) or not 0 <= board < boards:
        raise InputError(f"options: board is {board!r:.60}; choose 0 to {boards - 1}")
    return int(board)


def read_options(options: dict[str, Any] | None, known: tuple[str, ...] = ("board",)) -> dict[str, Any]:
    """The options of `reset`. Raises InputError on one that no environment here knows."""
    given = dict(options or {})
    if unknown := [name for name in given if name not in known]:
        raise InputError(f"options: unknown {unknown[0]!r:.60}; choose from {', '.join(known)}")
    return given


def read_moves(action: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Moves as int32 of that shape. Raises InputError if there are more, fewer, or no whole numbers."""
    moves = np.asarray(action)
    if moves.shape != shape or not np.issubdtype(moves.dtype, np.integer):
        what = f"{moves.dtype} of shape {list(moves.shape)}"
        raise InputError(
            f"step: the action is {what}; give whole numbers of shape {list(shape)}, a move for each agent"
        )
    return np.clip(moves, PAD - 1, WAIT + 1).astype(np.int32)


def _as_cells(places: np.ndarray) -> list[Square]:
    return [(row, column) for row, column in places.tolist()]
