"""Boards for tests: random ones, drawn ones, and their pictures in failure messages."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from lakewright.core_jax.types import PAD, Board, Labels
from tests.support.boards import search_oracle as oracle

LETTERS = "UDLRWJ"


def in_numpy(function: Callable[..., Any], static: int | tuple[int, ...] = ()) -> Callable[..., Any]:
    """A function as one program that gives numpy arrays, because JAX compiles each comparison of its own arrays."""
    jitted = jax.jit(function, static_argnums=static)
    return lambda *arguments: jax.tree.map(np.asarray, jitted(*arguments))


def random_boards(seed: int, count: int, size: int, holes: int | np.ndarray, agents: int = 2) -> Board:
    """`count` uniform boards: 2 `agents` distinct cells each, and exactly `holes` of the others (a number a board)."""
    order = np.random.default_rng(seed).random((count, size * size)).argsort(axis=1)
    ends = order[:, : 2 * agents]
    rank = order.argsort(axis=1) - 2 * agents
    is_hole = (rank >= 0) & (rank < np.broadcast_to(holes, count)[:, None])
    cells = np.stack([ends // size, ends % size], axis=-1).astype(np.int32)
    return Board(is_hole.reshape(count, size, size), cells[:, :agents], cells[:, agents:])


def mixed_boards(seed: int, count: int, size: int, agents: int = 2) -> Board:
    """Random boards whose hole ratios run from 0 to 0.5."""
    most = (size * size - 2 * agents + 1) // 2
    return random_boards(seed, count, size, np.arange(count) % (most + 1), agents)


def drawing(rows: list[str], starts: list[tuple], goals: list[tuple], size: int | None = None) -> Board:
    """One board from its rows, `.` free and `H` or `@` a hole; cells beyond the drawing, up to a square, are holes."""
    size = size or max(len(rows), len(rows[0]))
    holes = np.ones((size, size), bool)
    holes[: len(rows), : len(rows[0])] = [[letter != "." for letter in row] for row in rows]
    return Board(holes, np.array(starts, np.int32), np.array(goals, np.int32))


def batch(boards: list[Board]) -> Board:
    """Boards of one size as one batch."""
    return jax.tree.map(lambda *fields: np.stack(fields), *boards)


def each(boards: Board) -> list[Board]:
    """The boards of a batch, one by one."""
    return [jax.tree.map(lambda field, i=i: np.asarray(field)[i], boards) for i in range(len(boards.holes))]


def mapped(boards: Board, turns: int, mirror: bool) -> Board:
    """The boards turned by quarters, then mirrored."""
    size = boards.holes.shape[1]
    holes, cells = np.rot90(boards.holes, turns, axes=(1, 2)), np.stack([boards.starts, boards.goals])
    for _ in range(turns):
        cells = np.stack([size - 1 - cells[..., 1], cells[..., 0]], axis=-1)
    if mirror:
        holes, cells = holes[:, :, ::-1], np.stack([cells[..., 0], size - 1 - cells[..., 1]], axis=-1)
    return Board(holes, *cells)


def as_lists(board: Board) -> tuple[list[str], list[tuple], list[tuple]]:
    """Rows, starts and goals of one board, as `drawing` and the oracle take them."""
    rows = ["".join("H" if hole else "." for hole in row) for row in np.asarray(board.holes)]
    starts, goals = ([tuple(cell) for cell in np.asarray(cells).tolist()] for cells in (board.starts, board.goals))
    return rows, starts, goals


def as_strings(moves: np.ndarray) -> list[str]:
    """Moves [K, T] of one plan as the oracle plays them, a string an agent; a jump is J."""
    return ["".join(LETTERS[move] for move in agent if move != PAD) for agent in np.asarray(moves)]


def as_moves(plan: list[str], steps: int) -> np.ndarray:
    """Move strings as int8 [K, steps]."""
    moves = np.full((len(plan), steps), PAD, np.int8)
    for agent, letters in enumerate(plan):
        moves[agent, : len(letters)] = [LETTERS.index(letter) for letter in letters]
    return moves


def picture(board: Board) -> str:
    """One board in a failure message."""
    rows, starts, goals = as_lists(board)
    return "\n".join(["", *rows, f"starts={starts}", f"goals={goals}"])


def assert_every(holds: np.ndarray, boards: Board, **shown: np.ndarray) -> None:
    """Asserts `holds` [B]; the message shows the first board on which it fails, with its entries of `shown`."""
    failing = np.flatnonzero(~np.asarray(holds))
    if len(failing):
        first = failing[0]
        entries = "".join(f"\n{name}={np.asarray(values)[first].tolist()}" for name, values in shown.items())
        count = f"{len(failing)} of {len(holds)} boards fail, first number {first}:"
        raise AssertionError(count + picture(each(boards)[first]) + entries)


def optima(labels: Labels) -> np.ndarray:
    """Makespan, sum of costs and wait_required, [B, 3]."""
    return np.stack([labels.makespan, labels.sum_of_costs, labels.wait_required], axis=1)


def searched(boards: Board) -> np.ndarray:
    """What `optima` must be, by exhaustive search."""
    return np.array([oracle.optima(*as_lists(board)) for board in each(boards)])


def infinite_where_unsolvable(labels: Labels) -> tuple[np.ndarray, ...]:
    """Makespan and sum of costs, infinite where there is no plan."""
    return tuple(np.where(labels.solvable, field, np.inf) for field in (labels.makespan, labels.sum_of_costs))


def assert_same_optima(boards: Board, found: np.ndarray, expected: np.ndarray) -> None:
    assert_every((found == expected).all(axis=1), boards, found=found, expected=expected)
