"""Optimal plans for two agents, extracted by a walk down a table, step by step.

All that a step must know of a state fits in a byte, so the planes of a table are laid side by side, four boards to a
word, and each neighbour is read once. Boards of similar lengths walk together, as a group walks as far as its longest
plan.
"""

import functools
import itertools
import math
from collections.abc import Callable

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.lake.bitboards import (
    BOARDS_PER_WORD,
    board_side,
    by_word,
    cell_count,
    cell_index,
    move_offsets,
    one_hots,
    pack_cells,
    read_bit,
)
from lakewright.core_jax.solver.two_agents.joint_floods import CostTable
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import PAD, WAIT

LINES = BOARDS_PER_WORD // 4  # of words, as each holds the bytes of four boards
TOGETHER = 128  # boards that walk side by side on a CPU
PAIRS = np.array(sorted(itertools.product(range(5), repeat=2), key=lambda pair: pair.count(WAIT)))  # waits last
BOTH_MOVE = np.all(PAIRS != WAIT, axis=1)[:, None]
# The bits of the bytes of a table of costs: the cost modulo 8, and what is known of the state.
COST, REACHED, WAITS, A_PARKED, B_PARKED = 7, 8, 16, 32, 64
DISTANCE, CONNECTED = 3, 4  # likewise of a table of single distances, or of makespans: the number modulo 4


@flax.struct.dataclass
class Sheet:
    """A byte for each of P places on every board: bytes uint32 [8, W * P], board 32 w + 8 i + j in byte i of the words
    [j, w * P + place].
    """

    bytes: jax.Array
    words: int = flax.struct.field(pytree_node=False)

    @classmethod
    def from_planes(cls, *planes: jax.Array) -> "Sheet":
        """The sheet whose bytes have the bits of these planes, uint32 [W, ...], the lowest first."""
        flat = [plane.reshape(-1) for plane in planes]

        def pack_line(by: jax.Array) -> jax.Array:
            spread = [(plane >> by & 0x01010101) << place for place, plane in enumerate(flat)]
            return functools.reduce(jnp.bitwise_or, spread)

        # A loop, so that the planes are computed once, not again for every shift.
        return cls(jax.lax.map(pack_line, jnp.arange(LINES, dtype=jnp.uint32)), planes[0].shape[0])

    def read_bytes(self, board: jax.Array, place: jax.Array) -> jax.Array:
        """The bytes at `place`, int32 [..., G], of boards int32 [G]: int32 [..., G]."""
        word, lane = board // BOARDS_PER_WORD, board % BOARDS_PER_WORD
        begin = (lane % LINES * self.words + word) * (self.bytes.shape[1] // self.words)
        words = self.bytes.reshape(-1).at[begin + place].get(mode="promise_in_bounds")
        return (words >> (lane // LINES * 8).astype(jnp.uint32) & 0xFF).astype(jnp.int32)


@program(static_argnums=0)
def extract_cheapest_plans(horizon: int, tables: CostTable, starts: jax.Array) -> jax.Array:
    """Plans of optimal sum of costs: int8 [B, 2, horizon], all PAD if unsolvable. starts: int32 [B, 2, 2].

    A joint move costs 2 until one agent is parked, then 1. From a state of cost c the walk enters one of cost c - 2, or
    c - 1 once an agent is parked. From a state without forced wait both agents move into another such state, so a plan
    waits only if every optimal plan does.
    """
    size = board_side(tables.reached.shape[-1])
    cells = cell_index(size, starts)
    cost, _ = map_boards(read_joint_cost, tables, cells)
    parked = _find_parked(tables)
    # Costs of neighbours differ by at most 2 and distances by 1, so the lowest digits tell which is cheaper.
    joint = Sheet.from_planes(*(tables.cost[:, digit] for digit in range(3)), tables.reached, tables.wait, *parked)
    solo = Sheet.from_planes(*(tables.solo[:, :, digit] for digit in range(2)), tables.solo_reached)
    return _walk_boards(horizon, functools.partial(_choose_cheaper_move, size, joint, solo), size, cells, cost)


@program(static_argnums=0)
def extract_fastest_plans(
    horizon: int, arrival: jax.Array, free: jax.Array, starts: jax.Array, makespan: jax.Array
) -> jax.Array:
    """Plans of optimal makespan: int8 [B, 2, horizon], all PAD if `makespan` int32 [B] is -1.

    Each move leads from a state of makespan t to one of t - 1.

    Args:
        horizon: steps of the plans.
        arrival: uint32 [W, bits, N, N], the makespans of all joint states in binary.
        free: bool [B, n, n], free cells.
        starts: int32 [B, 2, 2].
        makespan: int32 [B], of the starts.
    """
    size = free.shape[-1]
    cells = jax.vmap(pack_cells)(by_word(free))
    legal = jnp.where(jnp.eye(cell_count(size), dtype=bool), 0, cells[:, :, None] & cells[:, None])
    joint = Sheet.from_planes(arrival[:, 0], arrival[:, 1], legal)  # makespans of neighbours differ by at most 1
    return _walk_boards(
        horizon, functools.partial(_choose_faster_move, size, joint), size, cell_index(size, starts), makespan
    )


def map_boards(function: Callable, tables: CostTable | jax.Array, *fields: jax.Array):
    """vmap of function(table, lane, *fields) over all words and their 32 lanes: results with a leading axis B."""
    over_lanes = jax.vmap(function, in_axes=(None, 0, *(0 for _ in fields)))
    over_words = jax.vmap(over_lanes, in_axes=(0, None, *(0 for _ in fields)))
    found = over_words(tables, jnp.arange(BOARDS_PER_WORD), *map(by_word, fields))
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), found)


def read_joint_cost(table: CostTable, lane: jax.Array, cells: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cost (-1 if the goals cannot be reached) and forced wait of a joint state of board `lane`, cells int32 [2]."""
    reached = read_bit(table.reached[*cells], lane).astype(bool)
    cost = jnp.where(reached, _read_digits(table.cost[:, *cells], lane), -1)
    return cost, reached & read_bit(table.wait[*cells], lane).astype(bool)


def read_state_number(digits: jax.Array, lane: jax.Array, cells: jax.Array) -> jax.Array:
    """The number of a joint state int32 [2] of board `lane`, from uint32 [bits, N, N]: int32 []."""
    return _read_digits(digits[:, *cells], lane)


def _read_digits(digits: jax.Array, lane: jax.Array) -> jax.Array:
    """A number of board `lane` given digit by digit: uint32 [bits] to int32 []."""
    weights = jnp.uint32(1) << jnp.arange(digits.shape[0], dtype=jnp.uint32)
    return jnp.sum(weights * read_bit(digits, lane)).astype(jnp.int32)


def _find_parked(tables: CostTable) -> list[jax.Array]:
    """The states whose optimum is that A (B) is home for good and the other walks alone: uint32 [W, N, N] each."""
    # An agent on its goal is parked for good where the cost of the state is the distance of the other around it.
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


def _walk_boards(horizon: int, choose: Callable, size: int, cells: jax.Array, lengths: jax.Array) -> jax.Array:
    """The moves of all boards, int8 [B, 2, horizon], without the waits after each agent's last.

    Args:
        horizon: steps of the moves.
        choose: maps (board, cells, left, phase) to moves int8 [2, G], their price int32 [G], and the next phase.
        size: n, the cells on a side of the boards.
        cells: int32 [B, 2], the padded cells of the starts.
        lengths: int32 [B], the price of a whole walk; no walk if it is not above 0.
    """
    count = lengths.shape[0]
    by = jnp.array(move_offsets(size), jnp.int32)

    def walk_group(group):
        board, cells, lengths = group

        def take_step(carry):
            # `left` is the price of what remains of each walk: the cost, or makespan, of the state at `cells`.
            time, cells, left, phase, moves = carry
            move, paid, phase = choose(board, cells, left, phase)
            move = jnp.where(left > 0, move, PAD)
            cells = cells + jnp.where(left > 0, by.at[move].get(mode="clip"), 0)
            moves = jax.lax.dynamic_update_index_in_dim(moves, move.astype(jnp.int8), time, 0)
            return time + 1, cells, left - paid, phase, moves

        def is_walking(carry):
            return jnp.any(carry[2] > 0) & (carry[0] < horizon)

        moves = jnp.full((horizon, *cells.T.shape), PAD, jnp.int8)
        begin = (jnp.int32(0), cells.T, lengths, jnp.zeros_like(lengths), moves)
        *_, moves = jax.lax.while_loop(is_walking, take_step, begin)
        return jnp.moveaxis(moves, -1, 0)

    together = math.gcd(count, TOGETHER) if jax.default_backend() == "cpu" else count
    order = jnp.argsort(lengths)
    in_order = (order, cells[order], lengths[order])
    groups = jax.tree.map(lambda field: field.reshape(-1, together, *field.shape[1:]), in_order)
    moves = jax.lax.map(walk_group, groups).reshape(count, horizon, 2)
    return _drop_last_waits(jnp.moveaxis(moves[jnp.argsort(order)], 1, 2))


def _choose_cheaper_move(
    size: int, joint: Sheet, solo: Sheet, board: jax.Array, cells: jax.Array, left: jax.Array, phase: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Optimal moves of G boards, int32 [2, G]; their price, int32 [G]; the new phase.

    Args:
        size: n, the cells on a side of the boards.
        joint: COST, REACHED, WAITS, A_PARKED and B_PARKED of all joint states.
        solo: DISTANCE and CONNECTED of all cells of A, then of B, while the other is parked.
        board: int32 [G], the boards.
        cells: int32 [2, G], the padded cells of both agents.
        left: int32 [G], the costs of these states.
        phase: int32 [G], 0 until an agent is parked, then 1 if it is A and 2 if it is B.
    """
    places, possible = _list_neighbours(size, cells)
    there = joint.read_bytes(board, places)
    here = there[-1]  # the last pair of moves is that of two waits
    # Who is parked stays so, as the cost of the state is then that of the other's walk.
    phase = jnp.where(phase > 0, phase, jnp.where(here & A_PARKED > 0, 1, jnp.where(here & B_PARKED > 0, 2, 0)))
    cheaper = possible & (there & REACHED > 0) & (there & COST == left - 2 & COST)
    unforced = BOTH_MOVE & (there & WAITS == 0)
    together = _pick_first_pair(cheaper & ((here & WAITS > 0) | unforced))

    count = cell_count(size)
    walker = jnp.where(phase == 1, 1, 0)
    around = jnp.where(walker == 1, cells[1], cells[0]) + np.array(move_offsets(size)[:WAIT])[:, None]
    on_board = (around >= 0) & (around < count)
    alone = solo.read_bytes(board, walker * count + jnp.where(on_board, around, count - 1))  # the last cell is a hole
    nearer = (alone & CONNECTED > 0) & (alone & DISTANCE == left - 1 & DISTANCE)
    step = jnp.min(jnp.where(nearer, np.arange(WAIT)[:, None], WAIT), axis=0)
    apart = jnp.where(walker == np.arange(2)[:, None], step, WAIT)
    return jnp.where(phase > 0, apart, together), jnp.where(phase > 0, 1, 2), phase


def _choose_faster_move(
    size: int, joint: Sheet, board: jax.Array, cells: jax.Array, left: jax.Array, phase: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Moves of G boards into states one step nearer to the goals, int32 [2, G]; their price, 1; the phase.

    Args:
        size: n, the cells on a side of the boards.
        joint: DISTANCE of all joint states, their makespans, and CONNECTED, whether they are legal.
        board: int32 [G], the boards.
        cells: int32 [2, G], the padded cells of both agents.
        left: int32 [G], the makespans of these states.
        phase: int32 [G], not used here.
    """
    places, possible = _list_neighbours(size, cells)
    there = joint.read_bytes(board, places)
    nearer = possible & (there & CONNECTED > 0) & (there & DISTANCE == left - 1 & DISTANCE)
    return _pick_first_pair(nearer), jnp.ones_like(left), phase


def _list_neighbours(size: int, cells: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The joint states that the PAIRS lead to from cells int32 [2, G], clipped to the board: int32 [25, G].

    Also bool [25, G], True for pairs that stay on the board and do not swap the agents.
    """
    count, by = cell_count(size), np.array(move_offsets(size))[PAIRS]
    a, b = cells[0] + by[:, :1], cells[1] + by[:, 1:]
    on_board = (a >= 0) & (a < count) & (b >= 0) & (b < count)
    swap = (a == cells[1]) & (b == cells[0])
    return jnp.clip(a, 0, count - 1) * count + jnp.clip(b, 0, count - 1), on_board & ~swap


def _pick_first_pair(good: jax.Array) -> jax.Array:
    """The moves, int32 [2, G], of the first of the PAIRS that is good, bool [25, G], or of the last one."""
    # The key orders the pairs and holds their moves, so that no look-up is needed.
    key = np.arange(len(PAIRS)) * 25 + PAIRS[:, 0] * 5 + PAIRS[:, 1]
    moves = jnp.min(jnp.where(good, key[:, None], key[-1]), axis=0) % 25
    return jnp.stack([moves // 5, moves % 5])


def _drop_last_waits(moves: jax.Array) -> jax.Array:
    """Turns the waits after each agent's last real move into PAD: int8 [..., T]."""
    times = jnp.arange(moves.shape[-1])
    real = (moves != PAD) & (moves != WAIT)
    last = jnp.max(jnp.where(real, times, -1), axis=-1, keepdims=True)
    return jnp.where(times <= last, moves, jnp.int8(PAD))
