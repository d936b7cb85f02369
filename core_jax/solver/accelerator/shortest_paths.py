"""Single agents on accelerators: distances, and shortest paths that never meet.

The certificate is the one of `lakewright.core_jax.solver.single_agent.certificate`, path by path: the same orders of
agents and of moves are tried, and the first that succeeds gives the plan. Everything is word by word, so that a few
steps of all boards are one kernel.
"""

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import lax

from lakewright.core_jax.solver.accelerator.cell_sets import (
    CellSet,
    has_cell,
    lead_into,
    mark_cells,
    move_steps,
    unite,
)
from lakewright.core_jax.solver.single_agent.certificate import ORDERS
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import OPPOSITE, WAIT

LAYERS = 8  # of a flood of single agents between two looks at whether it goes on
STEPS = 4  # of a walk between two looks at whether it goes on
T = TypeVar("T")
NO_MOVE = 5  # of a byte of moves, after an agent's last one: A's move in the low half, B's in the high one
IDLE = NO_MOVE | NO_MOVE << 4


@flax.struct.dataclass
class SinglePaths:
    """The single agents of B boards, K on each.

    closer: V words uint32 [B] for each agent and move, the cells from which the move leads one step nearer to the goal.
    distance: int32 [K, B], of the starts, -1 without a path. furthest: int32 [], the largest distance of any cell.
    """

    closer: tuple[tuple[CellSet, ...], ...]
    distance: jax.Array
    furthest: jax.Array


@program(static_argnums=0)
def measure_paths(size: int, free: CellSet, cells: jax.Array) -> SinglePaths:
    """Floods the distances of K agents backward from their goals, until nothing is new.

    Invariant: after d layers `reached` holds the cells within d moves of the goal. A cell that is new in layer d + 1 is
    one move from `reached`, so each of its moves into `reached` leads nearer, and no other move does.

    Args:
        size: n, the cells on a side of the boards.
        free: V words uint32 [B].
        cells: int32 [2 K, B], all starts, then all goals.
    """
    chex.assert_shape(cells, (None, free[0].shape[0]))
    starts, goals = jnp.split(cells, 2)
    around = tuple(jnp.broadcast_to(word[None], goals.shape) for word in free)
    home = tuple(word & there for word, there in zip(mark_cells(size, goals), around, strict=True))

    def flood_layer(_, carry):
        reached, closer, distance, furthest, depth, _ = carry
        sides = [lead_into(size, reached, move) for move in range(4)]
        new = tuple(x & y & ~z for x, y, z in zip(unite(*sides), around, reached, strict=True))
        # A move leads nearer from a new cell exactly if it leads into the layer before.
        closer = tuple(unite(old, _both(new, side)) for old, side in zip(closer, sides, strict=True))
        distance = distance + (~has_cell(reached, starts)).astype(jnp.int32)
        growing = functools.reduce(jnp.bitwise_or, new) != 0
        depth = depth + jnp.int32(1)
        return unite(reached, new), closer, distance, jnp.where(growing, depth, furthest), depth, growing

    def flood_layers(carry):
        return lax.fori_loop(0, LAYERS, flood_layer, carry)

    none = jnp.zeros(goals.shape, jnp.int32)
    nowhere = tuple(jnp.zeros_like(word) for word in home)
    begin = (home, (nowhere,) * 4, none, none, jnp.int32(0), jnp.ones(goals.shape, bool))
    reached, closer, distance, furthest, _, _ = lax.while_loop(lambda carry: jnp.any(carry[5]), flood_layers, begin)
    by_agent = tuple(tuple(tuple(word[agent] for word in move) for move in closer) for agent in range(len(goals)))
    return SinglePaths(by_agent, jnp.where(has_cell(reached, starts), distance, jnp.int32(-1)), jnp.max(furthest))


@program(static_argnums=(0, 1))
def find_disjoint_paths(size: int, horizon: int, cells: jax.Array, paths: SinglePaths) -> tuple[jax.Array, jax.Array]:
    """Finds shortest paths that never meet: bool [B], and the moves along them, uint8 [horizon, B].

    One agent takes the first of its nearer moves at every step. The other avoids it: G_t are the cells from which it
    still gets home without meeting the first agent after time t. There are four attempts, side by side: [2, 2, B], by
    who is first and by the order of moves.

    Args:
        size: n, the cells on a side of the boards.
        horizon: at least the largest distance, a multiple of STEPS.
        cells: int32 [4, B], both starts, then both goals.
        paths: from `measure_paths`.
    """
    chex.assert_is_divisible(horizon, STEPS)
    by_agent = [[tuple(word[None, None] for word in move) for move in moves] for moves in paths.closer]
    closer = [_stack_agents(*pair) for pair in zip(*by_agent, strict=True)]
    closer_second = [_stack_agents(*pair[::-1]) for pair in zip(*by_agent, strict=True)]
    starts, goals = (jnp.broadcast_to(ends[:, None], (2, 2, ends.shape[1])) for ends in (cells[:2], cells[2:]))
    # The longest path of this block decides; afterwards all agents are home.
    rounds = jnp.minimum(jnp.int32(horizon // STEPS), (jnp.max(paths.distance) + jnp.int32(STEPS - 1)) // STEPS)
    first, last = _walk_first(size, horizon, rounds, starts, closer)
    good, later = _find_good_cells(size, horizon, rounds, (last, goals[::-1]), closer_second, first)
    second = _walk_second(size, horizon, rounds, starts, closer_second, (first, later))
    found = has_cell(good, starts[::-1]) & jnp.all(paths.distance >= 0, axis=0)[None, None]
    return _pick_attempt(found, first, second, paths.distance)


def _stack_agents(of_a: CellSet, of_b: CellSet) -> CellSet:
    return tuple(jnp.concatenate([x, y]) for x, y in zip(of_a, of_b, strict=True))


def _walk_first(
    size: int, horizon: int, rounds: jax.Array, starts: jax.Array, closer: list[CellSet]
) -> tuple[jax.Array, jax.Array]:
    """The moves of the agents that go first, uint8 [horizon, 2, 2, B], WAIT once they are home; and where they end.

    Args:
        size: n, the cells on a side of the boards.
        horizon: see `find_disjoint_paths`.
        rounds: int32 [], rounds of STEPS.
        starts: int32 [2, 2, B].
        closer: the cells from which each move leads nearer.
    """

    def walk(time, carry):
        here, moves = carry
        move = _pick_moves([has_cell(cells, here) for cells in closer])
        return here + _step_of(size, move), _write_step(moves, move.astype(jnp.uint8), time)

    here, moves = _repeat(rounds, walk, (starts, jnp.full((horizon, *starts.shape), WAIT, jnp.uint8)))
    return moves, here


def _find_good_cells(
    size: int,
    horizon: int,
    rounds: jax.Array,
    ends: tuple[jax.Array, jax.Array],
    closer: list[CellSet],
    first: jax.Array,
) -> tuple[CellSet, CellSet]:
    """G_0, V words [2, 2, B], and all later G, V words [horizon, 2, 2, B], G_{t+1} at t.

    Invariant: `good` is G_{t+1} and `at` the first agent's cell at t + 1.

    Args:
        size: n, the cells on a side of the boards.
        horizon, rounds: see `_walk_first`.
        ends: the last cells of the first agents, and the goals of the second.
        closer: see `_walk_first`, for the second agents.
        first: the moves of the first agents.
    """
    last, goals = ends
    home = mark_cells(size, goals)

    def go_back(step, carry):
        good, at, later = carry
        time = rounds * STEPS - 1 - step
        later = tuple(_write_step(stack, word, time) for stack, word in zip(later, good, strict=True))
        move = lax.dynamic_index_in_dim(first, time, keepdims=False).astype(jnp.int32)
        good, (at,) = _step_back(size, good, home, closer, [(at, move)])
        return good, at, later

    begin = _without(home, mark_cells(size, last))
    later = tuple(jnp.zeros((horizon, *word.shape), jnp.uint32) for word in begin)
    good, _, later = _repeat(rounds, go_back, (begin, last, later))
    return good, later


def _step_back(
    size: int, good: CellSet, home: CellSet, closer: Sequence[CellSet], others: Sequence[tuple[jax.Array, jax.Array]]
) -> tuple[CellSet, list[jax.Array]]:
    """G_t, and the cells of the other agents at t.

    A move from c leads home from time t if it is nearer, ends in G_{t+1}, and is not a swap: c is a cell that another
    agent enters, by the opposite move.

    Args:
        size: n, the cells on a side of the boards.
        good: G_{t+1}.
        home: the agent's goal.
        closer: the cells from which each move leads nearer.
        others: the other agents, each by its cell at t + 1 and its move at t, int32.
    """
    steps = [_both(home, good)]
    for d in range(4):
        leads = _both(closer[d], lead_into(size, good, d))
        for at, move in others:
            swapped = tuple(jnp.where(move == OPPOSITE[d], word, jnp.uint32(0)) for word in mark_cells(size, at))
            leads = _without(leads, swapped)
        steps.append(leads)
    before = [at - _step_of(size, move) for at, move in others]
    # No agent may stand at t where another one does.
    good = unite(*steps)
    for at in before:
        good = _without(good, mark_cells(size, at))
    return good, before


@program(static_argnums=0)
def find_third_paths(
    size: int, ends: jax.Array, third: tuple[jax.Array, jax.Array], closer: tuple[CellSet, ...], moves: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The boards on which a shortest path of a third agent never meets two others, bool [B]; their steps, int32 [B].

    Args:
        size: n, the cells on a side of the boards.
        ends: int32 [3, B], the goals of the two, and the start of the third.
        third: its goal and its distance, -1 without a path, int32 [B] each.
        closer: V words uint32 [B], the cells from which each move of the third agent leads nearer.
        moves: uint8 [T, B], of the two, see NO_MOVE, to their goals; T is a multiple of STEPS, at least the distance.
    """
    chex.assert_is_divisible(moves.shape[0], STEPS)
    (*others, start), (goal, distance) = ends, third
    times = lax.broadcasted_iota(jnp.int32, moves.shape, 0) + jnp.int32(1)
    length = jnp.maximum(jnp.max(jnp.where(moves != IDLE, times, 0), axis=0), distance)
    rounds = (jnp.max(length) + jnp.int32(STEPS - 1)) // STEPS
    home = mark_cells(size, goal)

    def go_back(step, carry):
        good, others = carry
        both = lax.dynamic_index_in_dim(moves, rounds * STEPS - 1 - step, keepdims=False).astype(jnp.int32)
        good, others = _step_back(size, good, home, closer, [(others[0], both & 15), (others[1], both >> 4)])
        return good, tuple(others)

    good, _ = _repeat(rounds, go_back, (home, tuple(others)))
    return has_cell(good, start) & (distance >= 0), length


def _walk_second(
    size: int,
    horizon: int,
    rounds: jax.Array,
    starts: jax.Array,
    closer: list[CellSet],
    others: tuple[jax.Array, CellSet],
) -> jax.Array:
    """The moves of the agents that go second, uint8 [horizon, 2, 2, B]; anything if G_0 lacks the start.

    Args:
        size: n, the cells on a side of the boards.
        horizon, rounds: see `_walk_first`.
        starts: the first agents' starts.
        closer: see `_walk_first`, for the second agents.
        others: the moves of the first agents and all later G.
    """
    first, later = others

    def walk(time, carry):
        here, at, moves = carry
        good = tuple(lax.dynamic_index_in_dim(stack, time, keepdims=False) for stack in later)
        other = lax.dynamic_index_in_dim(first, time, keepdims=False).astype(jnp.int32)
        at = at + _step_of(size, other)
        can = [
            has_cell(closer[d], here)
            & has_cell(good, here + jnp.int32(move_steps(size)[d]))
            & ~((other == OPPOSITE[d]) & (here == at))
            for d in range(4)
        ]
        move = _pick_moves(can)
        return here + _step_of(size, move), at, _write_step(moves, move.astype(jnp.uint8), time)

    begin = (starts[::-1], starts, jnp.full((horizon, *starts.shape), WAIT, jnp.uint8))
    return _repeat(rounds, walk, begin)[2]


def _repeat(rounds: jax.Array, step: Callable[..., T], begin: T) -> T:
    """`step` of 0, 1, .. and what the one before returned, in rounds of STEPS, within which a GPU asks no host."""
    return lax.fori_loop(
        0, rounds, lambda turn, carry: lax.fori_loop(0, STEPS, lambda k, one: step(turn * STEPS + k, one), carry), begin
    )


def _pick_attempt(
    found: jax.Array, first: jax.Array, second: jax.Array, distance: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The first attempt that succeeded: bool [B], and its moves, uint8 [horizon, B].

    Args:
        found: bool [2, 2, B], which attempts succeeded.
        first, second: uint8 [horizon, 2, 2, B], the moves of both agents.
        distance: int32 [2, B].
    """
    of_a = jnp.concatenate([first[:, 0], second[:, 1]], axis=1)
    of_b = jnp.concatenate([second[:, 0], first[:, 1]], axis=1)
    tried = found.reshape(4, -1)
    times = lax.broadcasted_iota(jnp.int32, (first.shape[0], tried.shape[1]), 0)
    moves = []
    for agent, of_agent in enumerate((of_a, of_b)):
        move = of_agent[:, 3]
        for attempt in (2, 1, 0):  # backward, so that the first that succeeded stays
            move = jnp.where(tried[attempt][None], of_agent[:, attempt], move)
        moves.append(jnp.where(times < distance[agent][None], move, jnp.uint8(NO_MOVE)))
    done = jnp.any(tried, axis=0)
    return done, jnp.where(done[None], moves[0] | moves[1] << 4, jnp.uint8(IDLE))


def _pick_moves(can: list[jax.Array]) -> jax.Array:
    """The first possible move of each order, else WAIT: for each move bool [2, 2, B] to int32 [2, 2, B]."""
    chosen = []
    for number, order in enumerate(ORDERS):
        move = jnp.full(can[0][:, number].shape, WAIT, jnp.int32)
        for d in reversed(order):
            move = jnp.where(can[d][:, number], jnp.int32(d), move)
        chosen.append(move)
    return jnp.stack(chosen, axis=1)


def _step_of(size: int, move: jax.Array) -> jax.Array:
    """The number that a move adds to the number of a cell: int32 to int32."""
    step = jnp.zeros_like(move)
    for d, by in enumerate(move_steps(size)):
        step = jnp.where(move == d, jnp.int32(by), step)
    return step


def _write_step(stack: jax.Array, value: jax.Array, time: jax.Array) -> jax.Array:
    return lax.dynamic_update_index_in_dim(stack, value, time, 0)


def _both(one: CellSet, other: CellSet) -> CellSet:
    return tuple(x & y for x, y in zip(one, other, strict=True))


def _without(one: CellSet, other: CellSet) -> CellSet:
    return tuple(x & ~y for x, y in zip(one, other, strict=True))
