"""Copies between an accelerator and its host: boards there, packed labels and moves back.

A label is one word, a move half a byte, and only the plans longer than HEAD steps have more than HEAD steps copied.
"""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.solver.accelerator.cell_sets import CellSet, pack_free_cells
from lakewright.core_jax.solver.accelerator.shortest_paths import IDLE, NO_MOVE
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.support.threads import in_threads
from lakewright.core_jax.types import PAD, Board, Certificate, Labels, Status

WRITTEN = 1 << 15  # labels that are unpacked at a time
HEAD = 16  # steps of a plan that are copied for every board
COST_BITS, SPAN_BITS = 13, 13  # of a packed label; a bit each for solvable, wait and flood follow
SOLVABLE, WAITS, FLOODED = (1 << COST_BITS + SPAN_BITS + k for k in range(3))
NO_MOVES = np.full(1, PAD, np.int8).repeat(2).view(np.uint16)[0]


@dataclasses.dataclass(frozen=True)
class PackedLabels:
    """Labels of B boards in memory of the host.

    words: uint32 [B], see `pack_labels`. head: uint8 [B, 2, HEAD / 2], the first moves of each agent, two to a byte.
    longer: int32 [R], the boards with more, rising, and rest: uint8 [R, 2, (T - HEAD) / 2], their further moves.
    horizon: T.
    """

    words: np.ndarray
    head: np.ndarray
    longer: np.ndarray
    rest: np.ndarray
    horizon: int


@dataclasses.dataclass(frozen=True)
class PackedBoards:
    """B boards for two agents in memory of the host. free: uint32 [V, B], sets of free cells. cells: uint8 or uint16
    [4, B], the numbers of both starts, then of both goals.
    """

    free: np.ndarray
    cells: np.ndarray


@program(static_argnums=0)
def unload_boards(size: int, boards: Board) -> tuple[CellSet, jax.Array]:
    """The free cells of boards with leading axis B, V words uint32 [B]; both starts, then both goals, int32 [4, B]."""
    chex.assert_shape(boards.holes, (None, size, size))
    ends = jnp.concatenate([boards.starts, boards.goals], axis=1).astype(jnp.int32)
    return pack_free_cells(boards), (ends[..., 0] * size + ends[..., 1]).T


@program(static_argnums=0)
def pack_boards(size: int, free: CellSet, cells: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The fields of `PackedBoards`.

    Args:
        size: n, the cells on a side of the boards.
        free: V words uint32 [B].
        cells: int32 [4, B].
    """
    return jnp.stack(free), cells.astype(jnp.uint8 if size * size <= 1 << 8 else jnp.uint16)


@program
def pack_labels(
    makespan: jax.Array, cost: jax.Array, wait: jax.Array, flooded: jax.Array, moves: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Words of labels, uint32 [B]; the first HEAD moves; which plans are longer, bool [B]; the largest cost of a flood.

    Args:
        makespan, cost: int32 [B], -1 if unsolvable.
        wait, flooded: bool [B].
        moves: uint8 [T, B].
    """
    solvable = cost >= 0
    # On boards of at most 16x16 both numbers are far below 2^13, so no field reaches into another. `copy_back` refuses
    # boards with larger ones.
    words = jnp.where(solvable, cost | makespan << COST_BITS, 0).astype(jnp.uint32)
    for flag, bit in ((solvable, SOLVABLE), (wait & solvable, WAITS), (flooded, FLOODED)):
        words = words | jnp.where(flag, jnp.uint32(bit), jnp.uint32(0))
    longer = jnp.any(moves[HEAD:] != IDLE, axis=0)
    return words, _pack_moves(moves[:HEAD]), longer, jnp.max(jnp.where(flooded, cost, 0))


@program(static_argnums=0)
def pack_rest(horizon: int, moves: jax.Array, rows: jax.Array) -> jax.Array:
    """The moves after the first HEAD of some boards, uint8 [G, 2, (horizon - HEAD) / 2]; moves, uint8 [T, B]."""
    some = moves[HEAD:horizon, rows]
    return _pack_moves(jnp.pad(some, ((0, horizon - HEAD - some.shape[0]), (0, 0)), constant_values=IDLE))


def _pack_moves(moves: jax.Array) -> jax.Array:
    """uint8 [T, B] of moves of both agents to uint8 [B, 2, T / 2] of two moves of one."""
    early, late = moves[0::2], moves[1::2]
    of_a = early & 15 | (late & 15) << 4
    of_b = early >> 4 | late & 0xF0
    return jnp.transpose(jnp.stack([of_a, of_b]), (2, 0, 1))


def _pair_table() -> np.ndarray:
    """For each byte of two moves these as two bytes: uint16 [256]."""
    moves = np.arange(16)
    moves[NO_MOVE] = PAD
    byte = np.arange(256)
    return np.stack([moves[byte & 15], moves[byte >> 4]], axis=1).astype(np.int8).view(np.uint16)[:, 0]


PAIR_OF_MOVES = _pair_table()


def make_empty_boards(count: int, size: int) -> Board:
    """Boards of two agents, of arrays yet to be written."""
    starts, goals = (np.empty((count, 2, 2), np.int32) for _ in range(2))
    return Board(np.empty((count, size, size), bool), starts, goals)  # type: ignore[arg-type]


def write_boards(boards: Board, begin: int, packed: PackedBoards) -> None:
    """Writes unpacked boards into the rows from `begin` on of boards of numpy arrays, on all cores."""
    holes, starts, goals = (np.asarray(field) for field in (boards.holes, boards.starts, boards.goals))
    size = holes.shape[-1]
    count = min(packed.cells.shape[1], len(holes) - begin)
    position = np.stack(np.divmod(np.arange(size * size, dtype=np.int32), size), axis=1).astype(np.int32)

    def write_rows(first: int) -> None:
        rows = slice(first, min(first + WRITTEN, count))
        here = slice(begin + rows.start, begin + rows.stop)
        words = np.ascontiguousarray(packed.free[:, rows].T, "<u4").view(np.uint8)
        bits = np.unpackbits(words, axis=1, count=size * size, bitorder="little")
        np.equal(bits.reshape(-1, size, size), 0, out=holes[here])
        np.take(position, packed.cells[:2, rows].T, axis=0, out=starts[here], mode="clip")
        np.take(position, packed.cells[2:, rows].T, axis=0, out=goals[here], mode="clip")

    in_threads(write_rows, range(0, count, WRITTEN))


def make_empty_labels(count: int, horizon: int) -> Labels:
    """Labels of arrays yet to be written."""
    numbers = (np.empty(count, np.int32) for _ in range(4))
    status, certificate, makespan, cost = numbers
    moves = np.empty((count, 2, horizon), np.int8)
    return Labels(status, certificate, makespan, cost, np.empty(count, bool), moves)  # type: ignore[arg-type]


def write_labels(labels: Labels, begin: int, packed: PackedLabels) -> None:
    """Writes unpacked labels into the rows from `begin` on of labels of numpy arrays, on all cores."""
    count = min(len(packed.words), len(labels.status) - begin)
    firsts = range(0, count, WRITTEN)
    in_threads(lambda first: _write_rows(labels, begin, packed, range(first, min(first + WRITTEN, count))), firsts)


def _write_rows(labels: Labels, begin: int, packed: PackedLabels, rows: range) -> None:
    """Writes some packed labels; labels, begin, packed: see `write_labels`; rows: places in `packed`."""
    here, words = slice(begin + rows.start, begin + rows.stop), packed.words[rows.start : rows.stop].astype(np.int32)
    solvable = words & SOLVABLE != 0
    found = {
        "status": np.where(solvable, np.int32(Status.SOLVABLE), np.int32(Status.UNSOLVABLE)),
        "certificate": np.where(words & FLOODED, np.int32(Certificate.FLOOD), np.int32(Certificate.BOUND)),
        "makespan": np.where(solvable, words >> COST_BITS & (1 << SPAN_BITS) - 1, -1),
        "sum_of_costs": np.where(solvable, words & (1 << COST_BITS) - 1, -1),
        "wait_required": words & WAITS != 0,
    }
    for name, values in found.items():
        np.asarray(getattr(labels, name))[here] = values
    # Two moves of an agent are one number of 16 bits, so one look-up unpacks both.
    pairs = np.asarray(labels.moves)[here].view(np.uint16)
    pairs[..., : HEAD // 2] = np.take(PAIR_OF_MOVES, packed.head[rows.start : rows.stop])
    pairs[..., HEAD // 2 :] = NO_MOVES
    of_rest = slice(*np.searchsorted(packed.longer, [rows.start, rows.stop]))  # longer plans are by rising board
    rest = np.take(PAIR_OF_MOVES, packed.rest[of_rest])
    pairs[packed.longer[of_rest] - rows.start, :, HEAD // 2 : HEAD // 2 + rest.shape[-1]] = rest
