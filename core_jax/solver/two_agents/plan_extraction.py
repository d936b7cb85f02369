"""Optimal plans for two agents: a walk down a table, step by step.

All that a step must know of a state fits a byte: so the planes of a table are laid side by side, four boards to a word,
and each neighbour is read once. Boards of similar lengths walk together, as a group walks as far as its longest plan.
"""

import functools
import itertools
import math
from collections.abc import Callable

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.lake import (
    BOARDS_PER_WORD,
    bit,
    by_word,
    cell_count,
    cell_index,
    offsets,
    one_hots,
    pack_cells,
    side,
)
from lakewright.core_jax.solver.two_agents.joint_floods import CostTable
from lakewright.core_jax.support import program
from lakewright.core_jax.types import PAD, WAIT

LINES = BOARDS_PER_WORD // 4  # of words, as each holds the bytes of four boards
TOGETHER = 128  # boards that walk side by side on a CPU
PAIRS = np.array(sorted(itertools.product(range(5), repeat=2), key=lambda pair: pair.count(WAIT)))  # waits last
BOTH_MOVE = np.all(PAIRS != WAIT, axis=1)[:, None]


@flax.struct.dataclass
class Sheet:
    """A byte for each of P places on every board: bytes uint32 [8, W * P], board 32 w + 8 i + j in byte i of the words
    [j, w * P + place].
    """

    bytes: jax.Array
    words: int = flax.struct.field(pytree_node=False)

    @classmethod
    def of(cls, *planes: jax.Array) -> "Sheet":
        """From uint32 [W, ...], the lowest bit first."""
        flat = [plane.reshape(-1) for plane in planes]

        def shifted(by: jax.Array) -> jax.Array:
            spread = [(plane >> by & 0x01010101) << place for place, plane in enumerate(flat)]
            return functools.reduce(jnp.bitwise_or, spread)

        # A loop, so that the planes are computed once, not again for every shift.
        return cls(jax.lax.map(shifted, jnp.arange(LINES, dtype=jnp.uint32)), planes[0].shape[0])

    def read(self, board: jax.Array, place: jax.Array) -> jax.Array:
        """The bytes at `place`, int32 [..., G], of boards int32 [G]: int32 [..., G]."""
        word, lane = board // BOARDS_PER_WORD, board % BOARDS_PER_WORD
        begin = (lane % LINES * self.words + word) * (self.bytes.shape[1] // self.words)
        words = self.bytes.reshape(-1).at[begin + place].get(mode="promise_in_bounds")
        return (words >> (lane // LINES * 8).astype(jnp.uint32) & 0xFF).astype(jnp.int32)


@program(static_argnums=0)
def optimal_plans(horizon: int, tables: CostTable, starts: jax.Array) -> jax.Array:
    """Plans of optimal sum of costs: int8 [B, 2, horizon], all PAD where unsolvable. starts: int32 [B, 2, 2].

    From a state without forced wait only states without forced wait are entered, both agents moving: so a plan waits
    only where every optimal plan does.
    """
    size = side(tables.reached.shape[-1])
    cells = cell_index(size, starts)
    cost, _ = each_board(joint_cost, tables, cells)
    parked = _parked(tables)
    # Neighbours differ in their cost by at most 2, in their distance by 1.
    joint = Sheet.of(*(tables.cost[:, digit] for digit in range(3)), tables.reached, tables.wait, *parked)
    solo = Sheet.of(*(tables.solo[:, :, digit] for digit in range(2)), tables.solo_reached)
    return _walked(horizon, functools.partial(_cheaper_move, size, joint, solo), size, cells, cost)


@program(static_argnums=0)
def shortest_plans(
    horizon: int, arrival: jax.Array, free: jax.Array, starts: jax.Array, makespan: jax.Array
) -> jax.Array:
    """Plans of optimal makespan: int8 [B, 2, horizon], all PAD where `makespan` int32 [B] is -1.

    Args: arrival uint32 [W, bits, N, N], the makespans of all joint states; free bool [B, n, n]; starts int32
    [B, 2, 2].
    """
    size = free.shape[-1]
    cells = jax.vmap(pack_cells)(by_word(free))
    legal = jnp.where(jnp.eye(cell_count(size), dtype=bool), 0, cells[:, :, None] & cells[:, None])
    joint = Sheet.of(arrival[:, 0], arrival[:, 1], legal)  # neighbours differ by at most 1
    return _walked(horizon, functools.partial(_quicker_move, size, joint), size, cell_index(size, starts), makespan)


def each_board(function: Callable, tables: CostTable | jax.Array, *fields: jax.Array):
    """vmap of function(table, lane, *fields) over all words and their 32 lanes: results with a leading axis B."""
    over_lanes = jax.vmap(function, in_axes=(None, 0, *(0 for _ in fields)))
    over_words = jax.vmap(over_lanes, in_axes=(0, None, *(0 for _ in fields)))
    found = over_words(tables, jnp.arange(BOARDS_PER_WORD), *map(by_word, fields))
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), found)


def joint_cost(table: CostTable, lane: jax.Array, cells: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cost (-1 where the goals cannot be reached) and forced wait of a joint state of board `lane`, cells int32 [2]."""
    reached = bit(table.reached[*cells], lane).astype(bool)
    cost = jnp.where(reached, _number(table.cost[:, *cells], lane), -1)
    return cost, reached & bit(table.wait[*cells], lane).astype(bool)


def state_number(digits: jax.Array, lane: jax.Array, cells: jax.Array) -> jax.Array:
    """The number of a joint state int32 [2] of board `lane`, from uint32 [bits, N, N]: int32 []."""
    return _number(digits[:, *cells], lane)


def _number(digits: jax.Array, lane: jax.Array) -> jax.Array:
    """A number of board `lane` kept bit by bit: uint32 [bits] to int32 []."""
    weights = jnp.uint32(1) << jnp.arange(digits.shape[0], dtype=jnp.uint32)
    return jnp.sum(weights * bit(digits, lane)).astype(jnp.int32)


def _parked(tables: CostTable) -> list[jax.Array]:
    """The states whose optimum is that A (B) is home for good and the other walks alone: uint32 [W, N, N] each."""
    home = one_hots(tables.goals, tables.reached.shape[-1])
    a_walks, b_walks = jnp.moveaxis(tables.solo, 1, 0)
    b_differs = tables.cost ^ b_walks[:, :, None, :]
    a_differs = tables.cost ^ a_walks[:, :, :, None]
    at_home = (
        home[:, 0, :, None] & tables.solo_reached[:, 1, None, :],
        home[:, 1, None] & tables.solo_reached[:, 0, :, None],
    )
    differs = [functools.reduce(jnp.bitwise_or, jnp.moveaxis(field, 1, 0)) for field in (b_differs, a_differs)]
    return [tables.reached & home & ~other for home, other in zip(at_home, differs, strict=True)]


def _walked(horizon: int, choose: Callable, size: int, cells: jax.Array, lengths: jax.Array) -> jax.Array:
    """The moves of all boards, int8 [B, 2, horizon], without the waits after each agent's last.

    Args: choose, of (board, cells, left, phase) a move int8 [2, G], what it pays, and the phase; cells int32 [B, 2];
    lengths int32 [B], what a walk pays altogether, if more than 0.
    """
    count = lengths.shape[0]
    by = jnp.array(offsets(size), jnp.int32)

    def of_group(group):
        board, cells, lengths = group

        def advance(carry):
            time, cells, left, phase, moves = carry
            move, paid, phase = choose(board, cells, left, phase)
            move = jnp.where(left > 0, move, PAD)
            cells = cells + jnp.where(left > 0, by.at[move].get(mode="clip"), 0)
            moves = jax.lax.dynamic_update_index_in_dim(moves, move.astype(jnp.int8), time, 0)
            return time + 1, cells, left - paid, phase, moves

        def going(carry):
            return jnp.any(carry[2] > 0) & (carry[0] < horizon)

        moves = jnp.full((horizon, *cells.T.shape), PAD, jnp.int8)
        begin = (jnp.int32(0), cells.T, lengths, jnp.zeros_like(lengths), moves)
        *_, moves = jax.lax.while_loop(going, advance, begin)
        return jnp.moveaxis(moves, -1, 0)

    together = math.gcd(count, TOGETHER) if jax.default_backend() == "cpu" else count
    order = jnp.argsort(lengths)
    in_order = (order, cells[order], lengths[order])
    groups = jax.tree.map(lambda field: field.reshape(-1, together, *field.shape[1:]), in_order)
    moves = jax.lax.map(of_group, groups).reshape(count, horizon, 2)
    return _without_last_waits(jnp.moveaxis(moves[jnp.argsort(order)], 1, 2))


def _cheaper_move(
    size: int, joint: Sheet, solo: Sheet, board: jax.Array, cells: jax.Array, left: jax.Array, phase: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Optimal moves of G boards from states of costs `left`, int32 [2, G]; what they pay; the new phase.

    The phase is 0 until an agent is parked, then 1 if A and 2 if B is.
    """
    places, possible = _around(size, cells)
    there = joint.read(board, places)
    here = there[-1]  # all agents wait
    phase = jnp.where(phase > 0, phase, jnp.where(here & 32 > 0, 1, jnp.where(here & 64 > 0, 2, 0)))
    cheaper = possible & (there & 8 > 0) & (there & 7 == left - 2 & 7)
    unforced = BOTH_MOVE & (there & 16 == 0)
    together = _first_pair(cheaper & ((here & 16 > 0) | unforced))

    count = cell_count(size)
    walker = jnp.where(phase == 1, 1, 0)
    around = jnp.where(walker == 1, cells[1], cells[0]) + np.array(offsets(size)[:WAIT])[:, None]
    on_board = (around >= 0) & (around < count)
    alone = solo.read(board, walker * count + jnp.where(on_board, around, count - 1))  # the last cell is a hole
    nearer = (alone & 4 > 0) & (alone & 3 == left - 1 & 3)
    step = jnp.min(jnp.where(nearer, np.arange(WAIT)[:, None], WAIT), axis=0)
    apart = jnp.where(walker == np.arange(2)[:, None], step, WAIT)
    return jnp.where(phase > 0, apart, together), jnp.where(phase > 0, 1, 2), phase


def _quicker_move(
    size: int, joint: Sheet, board: jax.Array, cells: jax.Array, left: jax.Array, phase: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Moves of G boards into states one step nearer to the goals, int32 [2, G]; 1; the phase."""
    places, possible = _around(size, cells)
    there = joint.read(board, places)
    nearer = possible & (there & 4 > 0) & (there & 3 == left - 1 & 3)
    return _first_pair(nearer), jnp.ones_like(left), phase


def _around(size: int, cells: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Where the PAIRS lead from int32 [2, G]: joint states, clipped to the board, int32 [25, G]; and which stay on the
    board and are no swap, bool [25, G].
    """
    count, by = cell_count(size), np.array(offsets(size))[PAIRS]
    a, b = cells[0] + by[:, :1], cells[1] + by[:, 1:]
    on_board = (a >= 0) & (a < count) & (b >= 0) & (b < count)
    swap = (a == cells[1]) & (b == cells[0])
    return jnp.clip(a, 0, count - 1) * count + jnp.clip(b, 0, count - 1), on_board & ~swap


def _first_pair(good: jax.Array) -> jax.Array:
    """The first of the PAIRS that is good, bool [25, G], or the last: its moves int32 [2, G]."""
    # The place itself gives the moves, without a look-up.
    key = np.arange(len(PAIRS)) * 25 + PAIRS[:, 0] * 5 + PAIRS[:, 1]
    moves = jnp.min(jnp.where(good, key[:, None], key[-1]), axis=0) % 25
    return jnp.stack([moves // 5, moves % 5])


def _without_last_waits(moves: jax.Array) -> jax.Array:
    """Turns the waits after each agent's last real move into PAD: int8 [..., T]."""
    times = jnp.arange(moves.shape[-1])
    real = (moves != PAD) & (moves != WAIT)
    last = jnp.max(jnp.where(real, times, -1), axis=-1, keepdims=True)
    return jnp.where(times <= last, moves, jnp.int8(PAD))
