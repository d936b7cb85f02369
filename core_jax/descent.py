"""Optimal plans for two agents: a walk down the cost table, step by step."""

import functools
import itertools

import jax
import jax.numpy as jnp

from core_jax.bitboards import BOARDS_PER_WORD, bit, by_word, cell_index, offsets, side
from core_jax.floods import CostTable
from core_jax.types import PAD, WAIT


@functools.partial(jax.jit, static_argnums=0)
def optimal_plans(horizon: int, tables: CostTable, starts: jax.Array) -> jax.Array:
    """Plans of optimal sum of costs: int8 [B, 2, horizon], all PAD where unsolvable. starts: int32 [B, 2, 2]."""
    size = side(tables.reached.shape[-1])
    plan = functools.partial(_optimal_plan, size, horizon)
    return each_board(plan, tables, cell_index(size, starts))


def _optimal_plan(size: int, horizon: int, table: CostTable, lane: jax.Array, start: jax.Array) -> jax.Array:
    """Walks down the cost table from padded cells int32 [2]: int8 [2, horizon].

    From a state without forced wait only states without forced wait are entered, both agents moving: so a plan waits
    only where every optimal plan does.
    """
    by = jnp.array(offsets(size), jnp.int32)
    # A wait only where nothing else serves.
    pairs = jnp.array(sorted(itertools.product(range(5), repeat=2), key=lambda pair: pair.count(WAIT)), jnp.int8)
    both_move = jnp.all(pairs != WAIT, axis=1)
    goals = table.goals[:, lane]

    def joint_move(cells, cost):
        _, must_wait = joint_cost(table, lane, cells)
        targets = cells[:, None] + by[pairs].T
        swap = (targets[0] == cells[1]) & (targets[1] == cells[0])
        next_cost, next_wait = joint_cost(table, lane, targets)
        optimal = ~swap & (next_cost == cost - 2) & (must_wait | (both_move & ~next_wait))
        return pairs[jnp.argmax(optimal)]

    def solo_move(agent, cell, cost):
        closer = _solo(table, lane, agent, cell + by[:WAIT]) == cost - 1
        return jnp.argmax(closer).astype(jnp.int8)

    def advance(carry):
        time, cells, cost, moves = carry
        a_parked = (cells[0] == goals[0]) & (_solo(table, lane, 1, cells[1]) == cost)
        b_parked = (cells[1] == goals[1]) & (_solo(table, lane, 0, cells[0]) == cost)
        a_alone = jnp.array([solo_move(0, cells[0], cost), WAIT])
        b_alone = jnp.array([WAIT, solo_move(1, cells[1], cost)])
        move = jnp.where(a_parked, b_alone, jnp.where(b_parked, a_alone, joint_move(cells, cost)))
        cost = cost - jnp.where(a_parked | b_parked, 1, 2)
        return time + 1, cells + by[move], cost, moves.at[:, time].set(move)

    cost, _ = joint_cost(table, lane, start)
    moves = jnp.full((2, horizon), PAD, jnp.int8)
    begin = (jnp.int32(0), start, cost, moves)
    *_, moves = jax.lax.while_loop(lambda carry: (carry[2] > 0) & (carry[0] < horizon), advance, begin)
    return _without_last_waits(moves)


def _without_last_waits(moves: jax.Array) -> jax.Array:
    """Turns the waits after each agent's last real move into PAD: int8 [K, T]."""
    real = (moves != PAD) & (moves != WAIT)
    return jnp.where(jnp.flip(jnp.cumsum(jnp.flip(real, 1), axis=1), 1) > 0, moves, PAD)


def joint_cost(table: CostTable, lane: jax.Array, cells: tuple | jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cost (-1 where the goals cannot be reached) and forced wait of joint states, a pair of padded cell arrays."""
    reached, cells = _inside(table.reached[None], lane, cells)
    cost = jnp.where(reached, _number(table.cost[:, *cells], lane), -1)
    return cost, reached & bit(table.wait[*cells], lane).astype(bool)


def _solo(table: CostTable, lane: jax.Array, agent: int, cell: jax.Array) -> jax.Array:
    """Distance of one agent to its goal while the other is parked, -1 where there is no way."""
    reached, cells = _inside(table.solo_reached[agent][None], lane, (cell,))
    return jnp.where(reached, _number(table.solo[agent][:, *cells], lane), -1)


def _inside(reached: jax.Array, lane: jax.Array, cells: tuple | jax.Array) -> tuple[jax.Array, tuple]:
    """Whether cells are on the padded board and in `reached` [1, N, ...], and the cells clipped to it."""
    count = reached.shape[-1]
    on_board = functools.reduce(jnp.logical_and, [(cell >= 0) & (cell < count) for cell in cells])
    clipped = tuple(jnp.clip(cell, 0, count - 1) for cell in cells)
    return on_board & bit(reached[0][*clipped], lane).astype(bool), clipped


def _number(digits: jax.Array, lane: jax.Array) -> jax.Array:
    """A number of board `lane` kept bit by bit: uint32 [bits, ...] to int32 [...]."""
    weights = jnp.uint32(1) << jnp.arange(digits.shape[0], dtype=jnp.uint32)
    return jnp.tensordot(weights, bit(digits, lane), 1).astype(jnp.int32)


def each_board(function, tables: CostTable, starts: jax.Array):
    """vmap of function(table, lane, start) over all words and their 32 lanes: results with a leading axis B."""
    lanes = jnp.arange(BOARDS_PER_WORD)
    of_word = jax.vmap(jax.vmap(function, in_axes=(None, 0, 0)), in_axes=(0, None, 0))
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), of_word(tables, lanes, by_word(starts)))
