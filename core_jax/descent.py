"""Optimal plans for two agents: a walk down the cost table, step by step."""

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from core_jax.bitboards import BOARDS_PER_WORD, bit, by_word, cell_index, offsets, side
from core_jax.floods import CostTable
from core_jax.types import PAD, WAIT


@functools.partial(jax.jit, static_argnums=0)
def optimal_plans(horizon: int, tables: CostTable, starts: jax.Array) -> jax.Array:
    """Plans of optimal sum of costs: int8 [B, 2, horizon], all PAD where unsolvable. starts: int32 [B, 2, 2].

    From a state without forced wait only states without forced wait are entered, both agents moving: so a plan waits
    only where every optimal plan does.
    """
    size = side(tables.reached.shape[-1])
    by = jnp.array(offsets(size), jnp.int32)

    def advance(carry):
        time, cells, cost, moves = carry
        move, paid = each_board(functools.partial(_next_move, size), tables, cells, cost)
        going = cost > 0
        moves = moves.at[time].set(jnp.where(going[:, None], move, PAD))
        cells = jnp.where(going[:, None], cells + by[move], cells)
        return time + 1, cells, jnp.where(going, cost - paid, cost), moves

    cells = cell_index(size, starts)
    cost, _ = each_board(joint_cost, tables, cells)
    moves = jnp.full((horizon, *cells.shape), PAD, jnp.int8)
    begin = (jnp.int32(0), cells, cost, moves)
    *_, moves = jax.lax.while_loop(lambda carry: jnp.any(carry[2] > 0) & (carry[0] < horizon), advance, begin)
    return _without_last_waits(jnp.moveaxis(moves, 0, -1))


def joint_cost(table: CostTable, lane: jax.Array, cells: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cost (-1 where the goals cannot be reached) and forced wait of a joint state of board `lane`, cells int32 [2]."""
    reached = bit(table.reached[*cells], lane).astype(bool)
    cost = jnp.where(reached, _number(table.cost[:, *cells], lane), -1)
    return cost, reached & bit(table.wait[*cells], lane).astype(bool)


def state_number(digits: jax.Array, lane: jax.Array, cells: jax.Array) -> jax.Array:
    """The number of a joint state int32 [2] of board `lane`, from uint32 [bits, N, N]: int32 []."""
    return _number(digits[:, *cells], lane)


@functools.partial(jax.jit, static_argnums=0)
def shortest_plans(
    horizon: int, arrival: jax.Array, free: jax.Array, starts: jax.Array, makespan: jax.Array
) -> jax.Array:
    """Plans of optimal makespan: int8 [B, 2, horizon], all PAD where `makespan` int32 [B] is -1.

    Args: arrival uint32 [W, bits, N, N], the makespans of all joint states; free bool [B, n, n]; starts int32
    [B, 2, 2].
    """
    size = free.shape[-1]
    by = jnp.array(offsets(size), jnp.int32)
    is_free = jnp.pad(free, ((0, 0), (0, 0), (0, 1))).reshape(free.shape[0], -1)

    def advance(carry):
        time, cells, moves = carry
        left = makespan - time
        move = each_board(functools.partial(_quicker_move, size), arrival, is_free, cells, left)
        going = left > 0
        moves = moves.at[time].set(jnp.where(going[:, None], move, PAD))
        return time + 1, jnp.where(going[:, None], cells + by[move], cells), moves

    cells = cell_index(size, starts)
    begin = (jnp.int32(0), cells, jnp.full((horizon, *cells.shape), PAD, jnp.int8))
    *_, moves = jax.lax.while_loop(lambda carry: carry[0] < jnp.minimum(jnp.max(makespan), horizon), advance, begin)
    return _without_last_waits(jnp.moveaxis(moves, 0, -1))


def each_board(function: Callable, tables: CostTable | jax.Array, *fields: jax.Array):
    """vmap of function(table, lane, *fields) over all words and their 32 lanes: results with a leading axis B."""
    over_lanes = jax.vmap(function, in_axes=(None, 0, *(0 for _ in fields)))
    over_words = jax.vmap(over_lanes, in_axes=(0, None, *(0 for _ in fields)))
    found = over_words(tables, jnp.arange(BOARDS_PER_WORD), *map(by_word, fields))
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), found)


def _next_move(
    size: int, table: CostTable, lane: jax.Array, cells: jax.Array, cost: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """An optimal joint move int8 [2] from a state of that cost, and what it pays: 1 once an agent is parked, else 2."""
    a_parked = (cells[0] == table.goals[0, lane]) & (_solo_distance(table, lane, 1, cells[1]) == cost)
    b_parked = (cells[1] == table.goals[1, lane]) & (_solo_distance(table, lane, 0, cells[0]) == cost)
    a_alone = jnp.stack([_solo_move(size, table, lane, 0, cells[0]), jnp.int8(WAIT)])
    b_alone = jnp.stack([jnp.int8(WAIT), _solo_move(size, table, lane, 1, cells[1])])
    together = _joint_move(size, table, lane, cells, cost)
    move = jnp.where(a_parked, b_alone, jnp.where(b_parked, a_alone, together))
    return move, jnp.where(a_parked | b_parked, 1, 2)


def _joint_move(size: int, table: CostTable, lane: jax.Array, cells: jax.Array, cost: jax.Array) -> jax.Array:
    """A move of both into a state that costs 2 less.

    Moves can be taken back, so the costs of neighbouring states differ by at most 2: three binary digits tell which.
    """
    pairs, places, possible = _around(size, table.reached.shape[-1], cells)
    reached = possible & bit(table.reached[*places], lane).astype(bool)
    cheaper = _number(table.cost[:3, *places], lane) == (cost - 2) % 8
    must_wait = bit(table.wait[*cells], lane).astype(bool)
    unforced = jnp.all(pairs != WAIT, axis=1) & ~bit(table.wait[*places], lane).astype(bool)
    return pairs[jnp.argmax(reached & cheaper & (must_wait | unforced))]


def _quicker_move(
    size: int, arrival: jax.Array, lane: jax.Array, is_free: jax.Array, cells: jax.Array, left: jax.Array
) -> jax.Array:
    """A joint move int8 [2] into a state one step nearer to the goals; neighbours differ by at most 1."""
    pairs, places, possible = _around(size, arrival.shape[-1], cells)
    possible &= is_free[places[0]] & is_free[places[1]] & (places[0] != places[1])
    nearer = _number(arrival[:2, *places], lane) == (left - 1) % 4
    return pairs[jnp.argmax(possible & nearer)]


def _around(size: int, count: int, cells: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array], jax.Array]:
    """All 25 joint moves int8 [25, 2], waits last; the cells they lead to, clipped to the board; which stay on the
    board and are no swap, bool [25].
    """
    pairs = jnp.array(sorted(itertools.product(range(5), repeat=2), key=lambda pair: pair.count(WAIT)), jnp.int8)
    targets = cells[:, None] + jnp.array(offsets(size), jnp.int32)[pairs].T
    swap = (targets[0] == cells[1]) & (targets[1] == cells[0])
    on_board = jnp.all((targets >= 0) & (targets < count), axis=0)
    places = jnp.clip(targets, 0, count - 1)
    return pairs, (places[0], places[1]), on_board & ~swap


def _solo_move(size: int, table: CostTable, lane: jax.Array, agent: int, cell: jax.Array) -> jax.Array:
    """A move of one agent a step nearer to its goal while the other is parked."""
    around = cell + jnp.array(offsets(size)[:WAIT], jnp.int32)
    nearer = _solo_distance(table, lane, agent, around) == _solo_distance(table, lane, agent, cell) - 1
    return jnp.argmax(nearer).astype(jnp.int8)


def _solo_distance(table: CostTable, lane: jax.Array, agent: int, cell: jax.Array) -> jax.Array:
    """Distance of one agent to its goal while the other is parked; -2 off the board and where there is no way."""
    count = table.reached.shape[-1]
    place = jnp.clip(cell, 0, count - 1)
    reached = (cell >= 0) & (cell < count) & bit(table.solo_reached[agent, place], lane).astype(bool)
    return jnp.where(reached, _number(table.solo[agent, :, place].T, lane), -2)


def _number(digits: jax.Array, lane: jax.Array) -> jax.Array:
    """A number of board `lane` kept bit by bit: uint32 [bits, ...] to int32 [...]."""
    weights = jnp.uint32(1) << jnp.arange(digits.shape[0], dtype=jnp.uint32)
    return jnp.tensordot(weights, bit(digits, lane), 1).astype(jnp.int32)


def _without_last_waits(moves: jax.Array) -> jax.Array:
    """Turns the waits after each agent's last real move into PAD: int8 [..., T]."""
    real = (moves != PAD) & (moves != WAIT)
    return jnp.where(jnp.flip(jnp.cumsum(jnp.flip(real, -1), axis=-1), -1) > 0, moves, PAD)
