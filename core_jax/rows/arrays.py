"""Boards, moves and labels as arrays, and the same as columns or rows."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.core_jax.config import hole_ratio_of
from lakewright.core_jax.rows.columns import (
    columns_of,
    list_array,
    list_lengths,
    read_letters,
    read_numbers,
    strings_array,
    to_arrow,
    to_python,
)
from lakewright.core_jax.rows.row import SCHEMA, Row
from lakewright.core_jax.types import CERTIFICATE_NAMES, LETTERS, MOVES, PAD, STATUS_NAMES, WAIT, Board, Labels, Status

BOARD_SCHEMA = pa.schema([SCHEMA.field(name) for name in ("size", "agents", "grid", "starts", "goals")])
PLAN = pa.list_(pa.string())
_LETTERS = np.frombuffer((LETTERS + MOVES[WAIT]).encode(), np.uint8)  # PAD, which is -1, takes the last
_CODES = np.full(256, PAD - 1, np.int8)
_CODES[[ord(letter) for letter in LETTERS]] = range(len(LETTERS))


def board_of(row: Row) -> Board:
    """The board of a row, of numpy arrays: holes bool [N, N], starts and goals int32 [K, 2]."""
    holes = np.array([[letter == "H" for letter in line] for line in row.grid])
    return Board(holes, np.array(row.starts, np.int32), np.array(row.goals, np.int32))  # type: ignore[arg-type]


def boards_of(rows: Sequence[Row]) -> Board:
    """The boards of rows of one size and number of agents: a `Board` of numpy arrays with leading axis B."""
    return boards_in(columns_of(rows, BOARD_SCHEMA))


def boards_in(batch: pa.RecordBatch) -> Board:
    """Like `boards_of`, for columns."""
    size, agents = batch["size"][0].as_py(), batch["agents"][0].as_py()
    holes = (read_letters(batch["grid"].flatten()) == ord("H")).reshape(-1, size, size)
    starts, goals = (
        batch[name].flatten().flatten().to_numpy().astype(np.int32).reshape(-1, agents, 2)
        for name in ("starts", "goals")
    )
    return Board(holes, starts, goals)


def board_columns(boards: Board) -> dict[str, pa.Array]:
    """The columns `size`, `agents`, `grid`, `starts` and `goals` of boards with leading axis B."""
    holes = np.asarray(boards.holes)
    count, size, agents = len(holes), holes.shape[-1], boards.starts.shape[1]
    text = np.where(holes, np.uint8(ord("H")), np.uint8(ord("."))).reshape(-1)
    lines = strings_array(text, np.full(count * size, size))

    def cells(field: np.ndarray) -> pa.Array:
        pairs = list_array(np.full(count * agents, 2), pa.array(np.asarray(field, np.int32).reshape(-1)))
        return list_array(np.full(count, agents), pairs)

    return {
        "size": pa.array(np.full(count, size, np.int32)),
        "agents": pa.array(np.full(count, agents, np.int32)),
        "grid": list_array(np.full(count, size), lines),
        "starts": cells(boards.starts),  # type: ignore[arg-type]
        "goals": cells(boards.goals),  # type: ignore[arg-type]
    }


def label_columns(labels: Labels) -> dict[str, pa.Array]:
    """The columns from `status` on of labels with leading axis B; null if there is nothing to say."""
    status, certificate = np.asarray(labels.status), np.asarray(labels.certificate)
    solved = status == Status.SOLVABLE

    def where_solved(values: object) -> pa.Array:
        return pa.array(np.asarray(values), mask=~solved)

    unasked = pa.nulls(len(status), PLAN)
    shortest = labels.makespan_moves
    return {
        "status": pa.array(STATUS_NAMES).take(pa.array(status)),
        "makespan": where_solved(labels.makespan),
        "sum_of_costs": where_solved(labels.sum_of_costs),
        "wait_required": where_solved(labels.wait_required),
        "plan": plan_column(np.asarray(labels.moves), solved),
        "makespan_plan": unasked if shortest is None else plan_column(np.asarray(shortest), solved),
        "certificate": pa.array([None, *CERTIFICATE_NAMES[1:]]).take(pa.array(certificate)),
    }


def moves_of(plans: Sequence[list[str]], horizon: int) -> np.ndarray:
    """Plans for one number of agents to int8 [B, K, horizon], padded with PAD; `?` is a JUMP, as `plan_of` writes it.

    Raises ValueError on an unknown move.
    """
    return moves_in(to_arrow(plans, PLAN), horizon)


def moves_in(plans: pa.ListArray, horizon: int) -> np.ndarray:
    """Like `moves_of`, for a column without nulls."""
    strings = plans.flatten()
    codes = _CODES[read_letters(strings)]
    if codes.min(initial=0) < PAD:
        raise ValueError(f"a plan has an unknown move; use only {' '.join(MOVES)}")
    moves = np.full((len(strings), horizon), PAD, np.int8)
    moves[np.arange(horizon) < list_lengths(strings)[:, None]] = codes
    return moves.reshape(len(plans), -1, horizon)


def plan_of(moves: np.ndarray) -> list[str]:
    """Moves int8 [K, T] to one string for each agent, all as long as the longest: who is done waits."""
    return to_python(plan_column(moves[None]))[0]


def plan_column(moves: np.ndarray, valid: np.ndarray | None = None) -> pa.ListArray:
    """Moves int8 [B, K, T] to the plan of each board, as `plan_of`; null if not `valid`, bool [B]."""
    boards, agents, steps = moves.shape
    valid = np.ones(boards, bool) if valid is None else valid
    longest = (moves != PAD).sum(axis=2).max(axis=1, initial=0)[valid]
    lasts = np.repeat(longest, agents)
    text = _LETTERS[moves[valid]].reshape(-1, steps)[np.arange(steps) < lasts[:, None]]
    return list_array(np.where(valid, agents, 0), strings_array(text, lasts), valid)


def hole_ratios(batch: pa.RecordBatch) -> pa.Array:
    """The column `hole_ratio`, counted on boards of one kind if it is null."""
    given = batch["hole_ratio"]
    if not given.null_count:
        return given
    size, agents = batch["size"][0].as_py(), batch["agents"][0].as_py()
    holes = (read_letters(batch["grid"].flatten()) == ord("H")).reshape(-1, size * size).sum(axis=1)
    ratios = np.array([round(hole_ratio_of(size, agents, count), 4) for count in range(size * size + 1)])
    return pc.coalesce(given, pa.array(ratios[holes]))


def plan_lengths(plans: pa.ListArray) -> np.ndarray:
    """The steps of the longest string of each plan, int [B]. No plan may be null or without strings."""
    return np.maximum.reduceat(list_lengths(plans.flatten()), np.cumsum([0, *list_lengths(plans)[:-1]]))


def kinds_of(batch: pa.RecordBatch) -> np.ndarray:
    """Size and agents of each row, int32 [B, 2]."""
    return np.stack([read_numbers(batch["size"]), read_numbers(batch["agents"])], axis=1)
