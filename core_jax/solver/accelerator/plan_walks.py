"""Optimal plans on accelerators, read by a walk down the saved layers of a flood.

Ties are resolved as in `lakewright.core_jax.solver.two_agents.plan_extraction`: of the pairs of moves that are
optimal, and free of waits if an optimal plan is, the first of PAIRS. So the plan of a board depends on the board
alone.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from lakewright.core_jax.solver.accelerator.cell_sets import CellSet, has_cell, move_steps
from lakewright.core_jax.solver.accelerator.cost_floods import CostFlood, CostLayers, flood_all_costs
from lakewright.core_jax.solver.accelerator.joint_sets import JointSet
from lakewright.core_jax.solver.accelerator.makespan_floods import UNKNOWN
from lakewright.core_jax.solver.accelerator.shortest_paths import NO_MOVE
from lakewright.core_jax.solver.two_agents.plan_extraction import PAIRS
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import DOWN, LEFT, OPPOSITE, RIGHT, UP, WAIT

STEPS = 4  # between two looks at whether any board walks on


@program(static_argnums=(0, 1))
def flood_for_costs(
    size: int, depth: int, free: CellSet, cells: jax.Array, rows: jax.Array, spare: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Sums of costs int32 [G], forced waits bool [G] and moves uint8 [depth, G] of some of B boards, all solvable.

    A cost is UNKNOWN, and the moves IDLE, if the flood ended before it was found.

    Args:
        size: n, the cells on a side of the boards.
        depth: a multiple of 4, the largest sum of costs that is looked for.
        free: V words uint32 [B].
        cells: int32 [4, B], both starts, then both goals.
        rows: int32 [G], the boards.
        spare: int32 [], the flood ends when no more boards than this are open.
    """
    free, cells = tuple(word[rows] for word in free), cells[:, rows]
    flood = CostFlood.of_boards(size, free, cells[2:])
    layers, cost, certain, unforced = flood_all_costs(flood, depth, cells[:2], cells[2:], spare)
    moves = walk_down_costs(size, layers, cells[:2], jnp.where(certain, cost, 0))
    return jnp.where(certain, cost, jnp.int32(UNKNOWN)), ~unforced, moves


def walk_down_costs(size: int, layers: CostLayers, starts: jax.Array, cost: jax.Array) -> jax.Array:
    """The moves of optimal plans, uint8 [D, G]; empty if the cost is 0.

    Invariant: `left` is the cost of the state that the walk is in. A joint move costs 2 and leads into R_{left-2}; from
    a state of U_left it leads into U_{left-2}, else it may wait. Once an agent is parked for good, because the other
    gets home alone within `left` moves, each move of the other costs 1.

    Args:
        size: n, the cells on a side of the boards.
        layers: the flood's layers.
        starts: int32 [2, G].
        cost: int32 [G], the starts' costs.
    """
    group, depth = cost.shape[0], layers.depth
    goals = layers.goals

    def step(time, carry):
        a, b, left, phase, moves = carry
        unforced = has_cell(_read_layer(size, layers.joint, depth + 1 + left // 2, a), b)
        a_parks = (a == goals[0]) & _is_near(size, layers, left, 1, b)
        b_parks = (b == goals[1]) & _is_near(size, layers, left, 0, a)
        phase = jnp.where(phase > 0, phase, jnp.where(a_parks, 1, jnp.where(b_parks, 2, 0)))
        # The first layer, R_0, stands for those before it: it is read where nobody needs it.
        layer = jnp.where(unforced, depth + left // 2, jnp.maximum(left - 2, 0))
        lines = [_read_layer(size, layers.joint, layer, a + by) for by in move_steps(size)]
        together_a, together_b = _pick_pair(size, (a, b), lines, unforced)
        apart = _pick_alone(size, layers, left, phase, (a, b))
        move_a = jnp.where(phase == 0, together_a, jnp.where(phase == 1, jnp.int32(WAIT), apart))
        move_b = jnp.where(phase == 0, together_b, jnp.where(phase == 2, jnp.int32(WAIT), apart))
        walks = left > 0
        move_a, move_b = (jnp.where(walks, move, jnp.int32(WAIT)) for move in (move_a, move_b))
        a, b = a + _step_of(size, move_a), b + _step_of(size, move_b)
        left = jnp.maximum(left - jnp.where(phase > 0, 1, 2), 0)
        code = (move_a | move_b << 4).astype(jnp.uint8)
        return a, b, left, phase, lax.dynamic_update_index_in_dim(moves, code, time, 0)

    def walk(carry):
        time, *state = carry
        return (time + STEPS, *lax.fori_loop(0, STEPS, lambda k, state: step(time + k, state), tuple(state)))

    length = -(-depth // STEPS) * STEPS
    begin = (
        jnp.int32(0),
        starts[0],
        starts[1],
        cost,
        jnp.zeros_like(cost),
        jnp.full((length, group), WAIT * 17, jnp.uint8),
    )
    *_, moves = lax.while_loop(lambda carry: (carry[0] < length) & jnp.any(carry[3] > 0), walk, begin)
    return _drop_last_waits(moves[:depth])


def _read_layer(size: int, joint: JointSet, layer: jax.Array, a: jax.Array) -> CellSet:
    """B's cells with A on cell a in a layer, int32 [G] each: V words [G]. A cell off the board is read as another."""
    group = a.shape[0]
    place = (layer * size**2 + jnp.clip(a, 0, size**2 - 1)) * group + lax.iota(jnp.int32, group)
    return tuple(word.reshape(-1).at[place].get(mode="promise_in_bounds") for word in joint)


def _is_near(size: int, layers: CostLayers, left: jax.Array, agent: int, cell: jax.Array) -> jax.Array:
    """Return True if an agent on a cell, int32 [G], gets home alone within `left` moves, int32 [G]: bool [G].

    Args:
        size: n, the cells on a side of the boards.
        layers: the flood's layers.
        left: int32 [G], the moves that are left.
        agent: 0 or 1.
        cell: int32 [G], where the agent is.
    """
    group = cell.shape[0]
    place = (jnp.maximum(left, 0) * 2 + agent) * group + lax.iota(jnp.int32, group)
    cells = tuple(word.reshape(-1).at[place].get(mode="promise_in_bounds") for word in layers.alone)
    return (left >= 0) & has_cell(cells, jnp.clip(cell, 0, size**2 - 1))


def _stays(size: int, cell: jax.Array, move: int) -> jax.Array:
    """Return True if a move stays on the board: bool [G]."""
    if move == UP:
        return cell >= size
    if move == DOWN:
        return cell < size * (size - 1)
    if move == LEFT:
        return cell % size != 0
    if move == RIGHT:
        return cell % size != size - 1
    return jnp.ones(cell.shape, bool)


def _pick_pair(
    size: int, cells: tuple[jax.Array, jax.Array], lines: Sequence[CellSet], unforced: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The first pair of moves that leads into a layer, else two waits: int32 [G] each.

    Args:
        size: n, the cells on a side of the boards.
        cells: int32 [G] each, where A and B are.
        lines: by move of A, the cells of B in the layer's row of A's next cell.
        unforced: bool [G], whether both agents must move.
    """
    a, b = cells
    by = move_steps(size)
    may_a = [_stays(size, a, move) for move in range(5)]
    may_b = [_stays(size, b, move) for move in range(5)]
    code = jnp.full(a.shape, WAIT * 5 + WAIT, jnp.int32)
    # Backward, so that the first pair that is good is the one that stays.
    for k, m in reversed(PAIRS.tolist()):
        good = may_a[k] & may_b[m] & has_cell(lines[k], jnp.clip(b + by[m], 0, size**2 - 1))
        if m < WAIT and k == OPPOSITE[m]:
            good = good & (a + by[k] != b)  # opposite moves of neighbours would swap them
        if WAIT in (k, m):
            good = good & ~unforced
        code = jnp.where(good, jnp.int32(k * 5 + m), code)
    return code // 5, code % 5


def _pick_alone(
    size: int, layers: CostLayers, left: jax.Array, phase: jax.Array, cells: tuple[jax.Array, jax.Array]
) -> jax.Array:
    """The first move of the agent that is not parked that leads nearer to its goal, else WAIT: int32 [G].

    Args:
        size: n, the cells on a side of the boards.
        layers: the flood's layers.
        left: int32 [G], the walking agent's distance.
        phase: int32 [G], 1 if A is parked, 2 if B is.
        cells: where both agents are.
    """
    group = left.shape[0]
    walker = jnp.where(phase == 1, 1, 0)
    cell = jnp.where(phase == 1, cells[1], cells[0])
    place = (jnp.maximum(left - 1, 0) * 2 + walker) * group + lax.iota(jnp.int32, group)
    near = tuple(word.reshape(-1).at[place].get(mode="promise_in_bounds") for word in layers.alone)
    move = jnp.full(left.shape, WAIT, jnp.int32)
    for d in reversed(range(4)):
        good = _stays(size, cell, d) & has_cell(near, jnp.clip(cell + move_steps(size)[d], 0, size**2 - 1))
        move = jnp.where(good, jnp.int32(d), move)
    return move


def _step_of(size: int, move: jax.Array) -> jax.Array:
    return functools.reduce(
        lambda step, d: jnp.where(move == d, jnp.int32(move_steps(size)[d]), step), range(4), jnp.zeros_like(move)
    )


def _drop_last_waits(moves: jax.Array) -> jax.Array:
    """Bytes of moves, uint8 [T, G], with NO_MOVE after the last real move of each agent."""
    times = lax.broadcasted_iota(jnp.int32, moves.shape, 0)
    found = jnp.zeros_like(moves)
    for by in (0, 4):
        own = moves >> by & 7
        last = jnp.max(jnp.where(own != WAIT, times, jnp.int32(-1)), axis=0)
        found = found | jnp.where(times <= last[None], own, jnp.uint8(NO_MOVE)) << by
    return found
