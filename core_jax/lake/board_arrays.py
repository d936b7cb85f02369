"""The arrays of boards to be labelled, checked beforehand: a cell off the board would be read as another cell."""

import jax
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.types import Board


def check_boards(boards: Board) -> Board:
    """The same boards as numpy arrays, bool and int32.

    Raises InputError, naming the board, on arrays of other shapes or types, on a cell off its board, and on three or
    more agents of which two share a start or a goal: a search supposes that they don't. Two agents who do have no plan.

    Args:
        boards: arrays with leading axis B, any B >= 1.
    """
    holes, starts, goals = (np.asarray(field) for field in (boards.holes, boards.starts, boards.goals))
    count, agents, size = len(holes) if holes.ndim else 0, starts.shape[1] if starts.ndim > 1 else 0, holes.shape[-1:]
    if not count or not agents or holes.shape != (count, *size, *size):
        raise InputError(_describe_shapes(holes, starts, goals))
    if starts.shape != (count, agents, 2) or goals.shape != starts.shape:
        raise InputError(_describe_shapes(holes, starts, goals))
    side = holes.shape[1]
    for name, cells in (("starts", starts), ("goals", goals)):
        if cells.dtype.kind not in "iu":
            raise InputError(f"{name} are {cells.dtype}; give rows and columns as integers")
        if cells.min() < 0 or cells.max() >= side:
            board, agent, _ = np.argwhere((cells < 0) | (cells >= side))[0]
            raise InputError(
                f"board {board}, agent {agent}: {name} {cells[board, agent].tolist()} are off the board; give rows and "
                f"columns from 0 to {side - 1}"
            )
        if agents > 2:
            _check_distinct(name, cells.astype(np.int64) @ np.array([side, 1]))
    return jax.tree.map(
        lambda field, kind: field.astype(kind, copy=False),
        Board(holes, starts, goals),  # type: ignore[arg-type]
        Board(bool, np.int32, np.int32),  # type: ignore[arg-type]
    )


def _check_distinct(name: str, numbers: np.ndarray) -> None:
    """Raises InputError if agents share a cell. name: `starts` or `goals`. numbers: int [B, K], the cells."""
    in_order = np.sort(numbers, axis=1)
    for board in np.flatnonzero((in_order[:, 1:] == in_order[:, :-1]).any(axis=1))[:1]:
        raise InputError(f"board {board}: two agents share one of the {name}; give each its own cell")


def _describe_shapes(holes: np.ndarray, starts: np.ndarray, goals: np.ndarray) -> str:
    return (
        f"holes, starts and goals have the shapes {holes.shape}, {starts.shape} and {goals.shape}; give [B, n, n], "
        "[B, K, 2] and [B, K, 2], with at least one board and one agent"
    )
