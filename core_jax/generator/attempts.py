"""Attempts at boards of a stratum: each is one random map, or one random board, in the stratum or not.

An attempt depends on its key alone, not on the rest of its batch.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.generator.placements import draw_board, make_lots, pick_place, scale_below, scatter_cells
from lakewright.core_jax.lake.bitboards import (
    BOARDS_PER_WORD,
    board_side,
    by_word,
    cell_position,
    one_hot,
    pack_bits,
    read_bit,
)
from lakewright.core_jax.lake.label_batches import join_labels, pad_moves, take_rows
from lakewright.core_jax.solver.solver import BLOCK, flood_boards, prepare_solver, read_labels, solve
from lakewright.core_jax.solver.two_agents.joint_floods import CostTable
from lakewright.core_jax.support.parallel import on_all_cores
from lakewright.core_jax.support.profiling import in_phase
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.support.threads import in_threads
from lakewright.core_jax.types import PAD, Board, Labels, Status

# Compiled in three quarters of the time, and as fast: drawing is what a command compiles first.
QUICKLY = {"xla_backend_optimization_level": "1"}
FEW = 128  # whole boards drawn at once: each is solved, so few should be made beyond those needed
PUT = 1 << 14  # boards that a thread copies at a time


def block_of(agents: int) -> int:
    """The number of attempts made at once."""
    return BLOCK if agents == 2 else min(FEW, BLOCK)


@dataclasses.dataclass(frozen=True)
class Lanes:
    """The attempts to make, a multiple of `block_of`: `wait`, bool [L], chooses stratum and key of the stream;
    `index`, int [L], the board; `number`, int [L], which attempt at it.
    """

    wait: np.ndarray
    index: np.ndarray
    number: np.ndarray


@dataclasses.dataclass(frozen=True)
class Attempts:
    """The results of L attempts; NumPy arrays throughout.

    met: bool [L], who has the stratum; boards, labels: for those, in their order; may be None if no board has it. Of
    whole boards also status: int [L], a `Status`, and waits: bool [L], whether a wait is required; of maps None.
    """

    met: np.ndarray
    boards: Board | None
    labels: Labels | None
    status: np.ndarray | None = None
    waits: np.ndarray | None = None


def make_attempts(size: int, agents: int, holes: int, streams: jax.Array, lanes: Lanes) -> Attempts:
    """Makes attempts at boards, on maps for two agents and on whole boards for others.

    Args:
        size: n, the cells on a side of the boards.
        agents: number of agents on a board.
        holes: number of holes on a board.
        streams: keys [2], for the strata without and with a forced wait.
        lanes: which attempts to make.
    """
    try_them = _attempt_maps if agents == 2 else functools.partial(_attempt_boards, agents)
    return try_them(size, holes, streams, lanes)


def _attempt_maps(size: int, holes: int, streams: jax.Array, lanes: Lanes) -> Attempts:
    """Floods each map and picks the starts: so most attempts have the stratum, however rare it is among the boards."""

    def of_block(wait: np.ndarray, index: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, Board, Labels]:
        free, goals, tickets = _draw_maps(size, holes, streams, wait, index, number)
        tables = flood_boards(free, goals)
        boards, found = _pick_starts(tables, free, goals, wait, tickets)
        met = np.asarray(found)
        return met, *take_rows((boards, read_labels(tables, boards)), met)

    met, boards, labels = zip(*_in_blocks(BLOCK, of_block, lanes), strict=True)
    return Attempts(np.concatenate(met), join_boards(boards), join_labels(labels))


def join_boards(boards: Sequence[Board]) -> Board:
    """One batch of several."""
    return jax.tree.map(lambda *fields: np.concatenate(fields), *boards)


def _attempt_boards(agents: int, size: int, holes: int, streams: jax.Array, lanes: Lanes) -> Attempts:
    """Draws whole boards on which each agent is connected to its goal, and solves them.

    Those known to miss the stratum are not solved any further: by shortest paths that never meet, which need no wait,
    or once a search knows whether one is required.
    """
    prepare_solver(size, agents)
    draw = functools.partial(_draw_boards, size, agents, holes, streams)
    in_numpy = functools.partial(jax.tree.map, np.asarray)
    drawn, fit = zip(
        *_in_blocks(block_of(agents), lambda *lane: in_phase("draws", in_numpy, draw(*lane)), lanes), strict=True
    )
    boards, fits = join_boards(drawn), np.concatenate(fit)
    status = np.full(len(fits), int(Status.UNSOLVABLE))
    waits = np.zeros(len(fits), bool)
    if not fits.any():
        return Attempts(waits, None, None, status, waits)
    boards = take_rows(boards, fits)
    labels = solve(boards, wanted=lanes.wait[fits])
    status[fits], waits[fits] = labels.status, labels.wait_required
    met = (status == Status.SOLVABLE) & (waits == lanes.wait)
    return Attempts(met, take_rows(boards, met[fits]), take_rows(labels, met[fits]), status, waits)


def _in_blocks(block: int, function: Callable[..., Any], lanes: Lanes) -> list[Any]:
    fields = (lanes.wait, lanes.index.astype(np.uint32), lanes.number.astype(np.uint32))
    begins = range(0, len(lanes.wait), block)
    return on_all_cores(lambda begin: function(*(field[begin : begin + block] for field in fields)), begins)


def _derive_key(streams: jax.Array, wait: jax.Array, index: jax.Array, number: jax.Array) -> jax.Array:
    """The key of one attempt."""
    return jax.random.fold_in(jax.random.fold_in(streams[wait.astype(int)], index), number)


@program(static_argnums=0)
def _draw_maps(
    size: int, holes: jax.Array, streams: jax.Array, wait: jax.Array, index: jax.Array, number: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The maps of B attempts: free bool [B, n, n], goals int32 [B, 2, 2], and random uint32 [B] to pick the starts by.

    Args:
        size: n, the cells on a side of the boards.
        holes: int32 [], number of holes on a board.
        streams: keys [2], see `make_attempts`.
        wait: bool [B], the streams.
        index: uint32 [B], the boards.
        number: uint32 [B], the attempts at them.
    """

    def one(wait, index, number):
        bits = jax.random.bits(_derive_key(streams, wait, index, number), (size * size + 1,))
        return *draw_map(size, bits[1:], holes), bits[0]

    return jax.vmap(one)(wait, index, number)


@program(static_argnums=(0, 1), compiler_options=QUICKLY)
def _draw_boards(
    size: int,
    agents: int,
    holes: jax.Array,
    streams: jax.Array,
    wait: jax.Array,
    index: jax.Array,
    number: jax.Array,
) -> tuple[Board, jax.Array]:
    """The boards of B attempts, and on which maps there was room for the agents, bool [B]."""
    keys = jax.vmap(_derive_key, in_axes=(None, 0, 0, 0))(streams, wait, index, number)
    return jax.vmap(lambda key: draw_board(size, agents, key, holes))(keys)


@program
def _pick_starts(
    tables: CostTable, free: jax.Array, goals: jax.Array, wait: jax.Array, tickets: jax.Array
) -> tuple[Board, jax.Array]:
    """B boards with starts within the stratum and off the goals, and whether there were any, bool [B].

    Args:
        tables: the tables of the maps, which serve any starts.
        free: bool [B, n, n].
        goals: int32 [B, 2, 2].
        wait: bool [B], the strata.
        tickets: uint32 [B], random.
    """

    def of_stratum(table, wait):
        at_goal = one_hot(table.goals[0], count) | one_hot(table.goals[1], count)
        with_wait, without = table.wait, table.reached & ~table.wait
        chosen = (with_wait & pack_bits(wait)) | (without & ~pack_bits(wait))
        return chosen & ~at_goal[:, None] & ~at_goal[None]

    count = tables.reached.shape[-1]
    states = jax.vmap(of_stratum)(tables, by_word(wait))
    # A loop, so that the states are computed once, not again for every use.
    cells, met = jax.lax.map(lambda word: pick_states(*word), (states, by_word(tickets)))
    starts = cell_position(board_side(count), cells.reshape(-1, 2))
    return Board(~free, starts, goals), met.reshape(-1)


def draw_map(size: int, bits: jax.Array, holes: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """A map with exactly `holes` holes and two goals, uniform: free bool [n, n], goals int32 [2, 2].

    bits: uint32 [n^2], random.
    """
    drawn = make_lots(bits)
    return scatter_cells(drawn, jnp.sort(drawn), 2, holes)


def pick_states(states: jax.Array, tickets: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One joint state of each of 32 boards among those set in uint32 [N, N], by random uint32 [32].

    Returns: padded cells int32 [32, 2], and whether there were any, bool [32]. Uniform as far as `scale_below` is.
    """
    # Sums of two boards side by side in a word: 16 bits hold any count of a row.
    lines = jnp.arange(BOARDS_PER_WORD // 2, dtype=jnp.uint32)
    sums = jnp.sum(states[:, None] >> lines[:, None] & 0x00010001, axis=-1)  # [N, 16]
    in_row = jnp.concatenate([sums & 0xFFFF, sums >> 16], axis=1).astype(jnp.int32)

    def one(lane, ticket, in_row):
        total = jnp.sum(in_row)
        row, nth = pick_place(in_row, scale_below(ticket, total))
        column, _ = pick_place(read_bit(states[row], lane).astype(jnp.int32), nth)
        return jnp.stack([row, column]).astype(jnp.int32), total > 0

    return jax.vmap(one)(jnp.arange(BOARDS_PER_WORD), tickets, in_row.T)


class FoundBoards:
    """The boards and labels found so far, in arrays for all: what is copied most is copied once."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._all: tuple[Board, Labels] | None = None

    def add(self, places: np.ndarray, rows: np.ndarray, boards: Board, labels: Labels) -> None:
        """Puts rows of boards and labels into places, int [P] both."""
        horizon = labels.moves.shape[-1]
        if self._all is None:
            self._all = jax.tree.map(
                lambda field: np.empty((self._count, *field.shape[1:]), field.dtype), (boards, labels)
            )
        whole_boards, whole = self._all
        if (longer := max(horizon, whole.moves.shape[-1])) > whole.moves.shape[-1]:
            whole = dataclasses.replace(whole, moves=pad_moves(np.asarray(whole.moves), longer))
            self._all = whole_boards, whole
        self._put(whole_boards, boards, places, rows)
        self._put(dataclasses.replace(whole, moves=whole.moves[..., :horizon]), labels, places, rows)
        np.asarray(whole.moves)[places, :, horizon:] = PAD

    @staticmethod
    def _put(into: Any, some: Any, places: np.ndarray, rows: np.ndarray) -> None:
        """Args: into, arrays of all; some, arrays; places, rows, int [P], where rows of these go."""
        fields = list(zip(jax.tree.leaves(into), jax.tree.leaves(some), strict=True))

        def put_slice(begin: int) -> None:
            here = slice(begin, begin + PUT)
            for field, values in fields:
                field[places[here]] = values[rows[here]]

        in_threads(put_slice, range(0, len(places), PUT))

    def read(self) -> tuple[Board, Labels]:
        """The boards and labels; all were found."""
        assert self._all is not None
        return self._all
