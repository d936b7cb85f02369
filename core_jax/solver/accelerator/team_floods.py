"""Optima of three agents on accelerators, by floods of their joint states backward from the goals; no plans.

R_c are the states of a sum of costs of at most c. Either all three agents move, which costs 3 and leads into R_{c-3}.
Or one is parked on its goal for good, and the others are in the R_c of two agents who go around it (`cost_floods`).
Without waits the same layers say which states have a plan of that cost that never waits.
"""

import functools

import flax.struct
import jax
import jax.numpy as jnp
from jax import lax

from lakewright.core_jax.solver.accelerator.cell_sets import CellSet, has_cell, mark_cells, spread_flag
from lakewright.core_jax.solver.accelerator.cost_floods import CostFlood
from lakewright.core_jax.solver.accelerator.joint_sets import (
    JointSet,
    by_cell_of_a,
    cells_of_a,
    make_legal_set,
    settle,
)
from lakewright.core_jax.solver.accelerator.makespan_floods import UNKNOWN, count_layers
from lakewright.core_jax.solver.accelerator.team_sets import (
    along_a,
    along_b,
    find_preceding_team_set,
    has_team_state,
    make_home_set,
    make_legal_team_set,
)
from lakewright.core_jax.support.programs import program

PAIRS = ((0, 1), (0, 2), (1, 2))  # agents, by number; the third one of each is 2, 1 and 0
ENDLESS = 1 << 30  # a cost that no plan has


@flax.struct.dataclass
class _PairFront:
    """A flood of two agents around a third, parked one that has come to R_c.

    older, last: R_{c-1}, R_c. alone: V words uint32 [2, G], the cells of each within c moves of home.
    """

    older: JointSet
    last: JointSet
    alone: CellSet


@flax.struct.dataclass
class _TeamFront:
    """A flood that has come to R_c.

    c: int32 []. layers: R_{c-3} to R_c. pairs: by PAIRS. cost: int32 [G], how many layers lacked the start.
    """

    c: jax.Array
    layers: tuple[JointSet, ...]
    pairs: tuple[_PairFront, ...]
    cost: jax.Array


@program(static_argnums=0)
def flood_for_team_makespans(
    size: int, free: CellSet, cells: jax.Array, rows: jax.Array, spare: jax.Array
) -> jax.Array:
    """The optimal makespans of some of B boards, int32 [G]: -1 if unsolvable, UNKNOWN if the flood ended.

    Args:
        size: n, the cells on a side of the boards.
        free: V words uint32 [B].
        cells: int32 [6, B], all starts, then all goals.
        rows: int32 [G], the boards.
        spare: int32 [], the flood ends when no more boards than this are open.
    """
    free, cells = tuple(word[rows] for word in free), cells[:, rows]

    def grow(states: JointSet) -> JointSet:
        before = find_preceding_team_set(size, states, waits=True)
        return settle(tuple(x & y for x, y in zip(before, make_legal_team_set(size, free), strict=True)))

    begin = _begin_at_home(size, free, cells[3:])
    return count_layers(begin, grow, lambda states: has_team_state(states, cells[:3]), spare)


@program(static_argnums=(0, 1))
def flood_for_team_costs(
    size: int, waits: bool, free: CellSet, cells: jax.Array, most: jax.Array, rows: jax.Array, spare: jax.Array
) -> jax.Array:
    """The optimal sums of costs of some of B boards of three agents, int32 [G]; UNKNOWN if the flood ended.

    Invariant: R_c only grows with c. So the number of layers that lack the start is its cost, once a layer holds it.

    Args:
        size: n, the cells on a side of the boards.
        waits: whether agents may wait before they are home.
        free: V words uint32 [B].
        cells: int32 [6, B], all starts, then all goals.
        most: int32 [B], the largest cost to look for; a board without a plan of that cost gets ENDLESS.
        rows: int32 [G], the boards; those without a plan at all must have a limit.
        spare: int32 [], the flood ends when no more boards than this are open.
    """
    free, cells, most = tuple(word[rows] for word in free), cells[:, rows], most[rows]
    homes = tuple(mark_cells(size, goal) for goal in cells[3:])
    floods = [_flood_around(size, free, homes, cells[3:], pair) for pair in PAIRS]
    legal = functools.partial(make_legal_team_set, size, free)  # computed where it is needed, not read

    def holds_start(states: JointSet) -> jax.Array:
        return has_team_state(states, cells[:3])

    def grow(at: _TeamFront) -> _TeamFront:
        pairs = tuple(_grow_pair(flood, pair, waits) for flood, pair in zip(floods, at.pairs, strict=True))
        before = find_preceding_team_set(size, at.layers[1], waits)
        words = zip(at.layers[3], _park_one(size, homes, pairs), before, legal(), strict=True)
        now = settle(tuple((x | y | z) & allowed for x, y, z, allowed in words))
        return _TeamFront(at.c + 1, (*at.layers[1:], now), pairs, at.cost + (~holds_start(now)).astype(jnp.int32))

    def is_going(at: _TeamFront) -> jax.Array:
        return jnp.sum(~holds_start(at.layers[3]) & (at.c < most), dtype=jnp.int32) > spare

    begin = _begin_at_home(size, free, cells[3:])
    none = tuple(jnp.zeros_like(word) for word in begin)
    pairs = tuple(_begin_pair(flood) for flood in floods)
    at = _TeamFront(jnp.int32(0), (none, none, none, begin), pairs, (~holds_start(begin)).astype(jnp.int32))
    # Four layers at a time, each written where the oldest was, which no later one is made from: so none is copied.
    end = lax.while_loop(is_going, lambda at: grow(grow(grow(grow(at)))), at)
    late = jnp.where(end.c < most, jnp.int32(UNKNOWN), jnp.int32(ENDLESS))
    return jnp.where(holds_start(end.layers[3]), end.cost, late)


def _begin_at_home(size: int, free: CellSet, goals: jax.Array) -> JointSet:
    """R_0, the state with all agents on their goals, int32 [3, G], if it is legal."""
    a, b, c = (mark_cells(size, goal) for goal in goals)
    legal = make_legal_team_set(size, free)
    return settle(tuple(x & y for x, y in zip(make_home_set(size, (a, b, c)), legal, strict=True)))


def _flood_around(
    size: int, free: CellSet, homes: tuple[CellSet, ...], goals: jax.Array, pair: tuple[int, int]
) -> CostFlood:
    """The flood of two agents around the third, who is parked on its goal.

    Args:
        size: n, the cells on a side of the boards.
        free: V words uint32 [G].
        homes: the agents' goals, V words uint32 [G] each.
        goals: int32 [3, G].
        pair: the two agents.
    """
    around = tuple(word & ~parked for word, parked in zip(free, homes[3 - sum(pair)], strict=True))
    return CostFlood.of_boards(size, around, goals[jnp.array(pair)])


def _begin_pair(flood: CostFlood) -> _PairFront:
    home = tuple(jnp.stack([a, b]) & free[None] for a, b, free in zip(*flood.home, flood.free, strict=True))
    legal = make_legal_set(flood.size, flood.free)
    first = settle(tuple(x & y for x, y in zip(flood.park(home), legal, strict=True)))
    return _PairFront(tuple(jnp.zeros_like(word) for word in first), first, home)


def _grow_pair(flood: CostFlood, at: _PairFront, waits: bool) -> _PairFront:
    alone = flood.grow_alone(at.alone)
    return _PairFront(at.last, flood.grow(at.older, at.last, alone, waits), alone)


def _park_one(size: int, homes: tuple[CellSet, ...], pairs: tuple[_PairFront, ...]) -> JointSet:
    """The states with one agent parked and the two others in their set, V words uint32 [n, n, n, n, G].

    Args:
        size: n, the cells on a side of the boards.
        homes: the agents' goals, V words uint32 [G] each.
        pairs: the other agents' floods, by PAIRS.
    """
    ab, ac, bc = (pair.last for pair in pairs)
    at_a, at_b = (by_cell_of_a(size, home) for home in homes[:2])
    # Of the pair of A and B a bit for each cell of B becomes a word for each.
    b_there = spread_flag(has_cell(along_a(ab), along_b((jnp.asarray(cells_of_a(size)),))[0]))
    a_parked, b_parked = at_a[:, :, None, None], at_b[None, None]
    words = zip(along_b(bc), along_a(ac), homes[2], strict=True)
    return tuple((a_parked & x) | (b_parked & y) | (b_there & home[None, None, None, None]) for x, y, home in words)
