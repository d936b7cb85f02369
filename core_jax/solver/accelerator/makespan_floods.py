"""Optimal makespans on accelerators, by floods of joint states backward from the goals."""

import jax
import jax.numpy as jnp
from jax import lax

from lakewright.core_jax.solver.accelerator.cell_sets import CellSet, mark_cells
from lakewright.core_jax.solver.accelerator.joint_sets import (
    JointSet,
    differ_anywhere,
    find_preceding_set,
    has_state,
    make_legal_set,
    pair_sets,
    settle,
)
from lakewright.core_jax.support.programs import program

UNKNOWN = -2  # a number that a flood ended too early to find
ROUNDS = 2  # of two layers between two looks at whether the flood continues


@program(static_argnums=0)
def flood_for_makespans(size: int, free: CellSet, cells: jax.Array, rows: jax.Array, spare: jax.Array) -> jax.Array:
    """The optimal makespans of some of B boards, int32 [G]: -1 if unsolvable, UNKNOWN if the flood ended.

    Invariant: after t layers the states are those from which the goals can be reached in t moves; waits are legal, so
    layers only grow. A layer equal to the one before is the last: a start outside has no plan.

    Args:
        size: n, the cells on a side of the boards.
        free: V words uint32 [B].
        cells: int32 [4, B], both starts, then both goals.
        rows: int32 [G], the boards.
        spare: int32 [], the flood ends when no more boards than this are open.
    """
    free, cells = tuple(word[rows] for word in free), cells[:, rows]
    start_a, start_b = cells[0], cells[1]

    def grow(states: JointSet) -> JointSet:
        before = find_preceding_set(size, states, waits=True)
        return settle(tuple(x & y for x, y in zip(before, make_legal_set(size, free), strict=True)))

    def flood_two_layers(_, carry):
        states, _, makespan = carry
        first = grow(states)
        second = grow(first)
        for layer in (first, second):
            makespan = makespan + (~has_state(layer, start_a, start_b)).astype(jnp.int32)
        return second, first, makespan

    def flood(carry):
        # The last two layers stay apart, so that they can be compared; each is written where an older one was.
        states, before, makespan = lax.fori_loop(0, ROUNDS, flood_two_layers, carry[:3])
        return states, before, makespan, has_state(states, start_a, start_b), differ_anywhere(states, before)

    def is_going(carry):
        return jnp.sum(~carry[3] & carry[4], dtype=jnp.int32) > spare

    home = pair_sets(size, mark_cells(size, cells[2]), mark_cells(size, cells[3]))
    begin = settle(tuple(x & y for x, y in zip(home, make_legal_set(size, free), strict=True)))
    reached = has_state(begin, start_a, start_b)
    none = tuple(jnp.zeros_like(word) for word in begin)
    carry = (begin, none, (~reached).astype(jnp.int32), reached, jnp.ones(rows.shape, bool))
    _, _, makespan, reached, changed = lax.while_loop(is_going, flood, carry)
    # A start outside layers that no longer grow has no plan; if they still grew, the flood ended too early to say.
    return jnp.where(reached, makespan, jnp.where(changed, jnp.int32(UNKNOWN), jnp.int32(-1)))
