"""Optimal makespans on accelerators, by floods of joint states backward from the goals."""

from collections.abc import Callable

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

    Args:
        size: n, the cells on a side of the boards.
        free: V words uint32 [B].
        cells: int32 [4, B], both starts, then both goals.
        rows: int32 [G], the boards.
        spare: int32 [], the flood ends when no more boards than this are open.
    """
    free, cells = tuple(word[rows] for word in free), cells[:, rows]

    def grow(states: JointSet) -> JointSet:
        before = find_preceding_set(size, states, waits=True)
        return settle(tuple(x & y for x, y in zip(before, make_legal_set(size, free), strict=True)))

    home = pair_sets(size, mark_cells(size, cells[2]), mark_cells(size, cells[3]))
    begin = settle(tuple(x & y for x, y in zip(home, make_legal_set(size, free), strict=True)))
    return count_layers(begin, grow, lambda states: has_state(states, cells[0], cells[1]), spare)


def count_layers(
    begin: JointSet,
    grow: Callable[[JointSet], JointSet],
    holds_start: Callable[[JointSet], jax.Array],
    spare: jax.Array,
) -> jax.Array:
    """The layers until the start is in one, int32 [G]: -1 if it never is, UNKNOWN if the flood ended.

    Invariant: after t layers the states are those from which the goals can be reached in t moves; waits are legal, so
    layers only grow. A layer equal to the one before is the last: a start outside has no plan.

    Args:
        begin: the states at the goals, words uint32 [..., G].
        grow: makes a layer from the one before.
        holds_start: says whether a layer holds the start of each board, bool [G].
        spare: int32 [], the flood ends when no more boards than this are open.
    """

    def flood_two_layers(_, carry):
        states, _, makespan = carry
        first = grow(states)
        second = grow(first)
        for layer in (first, second):
            makespan = makespan + (~holds_start(layer)).astype(jnp.int32)
        return second, first, makespan

    def flood(carry):
        # The last two layers stay apart, so that they can be compared; each is written where an older one was.
        states, before, makespan = lax.fori_loop(0, ROUNDS, flood_two_layers, carry[:3])
        return states, before, makespan, holds_start(states), differ_anywhere(states, before)

    def is_going(carry):
        return jnp.sum(~carry[3] & carry[4], dtype=jnp.int32) > spare

    reached = holds_start(begin)
    none = tuple(jnp.zeros_like(word) for word in begin)
    carry = (begin, none, (~reached).astype(jnp.int32), reached, jnp.ones(reached.shape, bool))
    _, _, makespan, reached, changed = lax.while_loop(is_going, flood, carry)
    # A start outside layers that no longer grow has no plan; if they still grew, the flood ended too early to say.
    return jnp.where(reached, makespan, jnp.where(changed, jnp.int32(UNKNOWN), jnp.int32(-1)))
