"""Distance floods of two agents, backward from the goals, on bitboards.

One flood labels every pair of starts of a map at once, 32 maps to a word; vmap or map over words. A joint state is a
pair of padded cells: uint32 [N, N], agent A first. All sets of states exclude holes and the diagonal, where the agents
would meet.
"""

import dataclasses

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from core_jax.bitboards import BOARDS_PER_WORD, bit, cell_count, offsets, one_hot, shift


@flax.struct.dataclass
class CostTable:
    """The optimal sum of costs from every joint state of 32 maps with fixed goals.

    cost: uint32 [bits, N, N], the optimum in binary, bit by bit; meaningful where `reached`.
    reached: uint32 [N, N], from where the goals can be reached. wait: uint32 [N, N], where reached, whether every
    optimal plan waits before its final arrivals. solo: uint32 [2, bits, N], the distance of A (B) to its goal while
    the other is parked on its own; solo_reached: uint32 [2, N]. goals: int32 [2, 32]. complete: bool [], False if
    the flood ran into the largest cost that `bits` can hold.
    """

    cost: jax.Array
    reached: jax.Array
    wait: jax.Array
    solo: jax.Array
    solo_reached: jax.Array
    goals: jax.Array
    complete: jax.Array


def cost_bits(size: int) -> int:
    """Bits that hold any sum of costs met on n x n boards; `CostTable.complete` tells if one was larger."""
    return (4 * size * size).bit_length()


def sum_of_costs_flood(size: int, free: jax.Array, goals: jax.Array) -> CostTable:
    """Labels every pair of starts with its optimal sum of costs and whether an optimal plan must wait.

    Args: size n; free uint32 [N]; goals int32 [2, 32], padded cells.

    In layers of cost c: R_c = R_{c-1} | seeds_c | pre(R_{c-2}), since a joint step costs 2 until one agent is parked
    for good; the seeds are the states where that has happened, (gA, b) at the cost d_B(b) with gA blocked, and the
    mirror. The same recursion with a `pre` in which both must move gives the plans without waits; a state that it
    reaches later than R requires a wait.
    """
    count, bits = cell_count(size), cost_bits(size)
    chex.assert_shape(free, (count,))
    chex.assert_shape(goals, (2, BOARDS_PER_WORD))
    states = joint_states(free)
    parked = jnp.stack([one_hot(goals[0], count), one_hot(goals[1], count)])
    # A walks while B is parked, and the other way round.
    solo_free = free & ~parked[::-1]

    def seeds(solo):
        return (parked[0][:, None] & solo[1][None]) | (solo[0][:, None] & parked[1][None])

    def layer(carry):
        cost, table, (reached2, reached1), (moving2, moving1), quiet = carry
        solo = table.solo_reached | (neighbours(size, table.solo_reached) & solo_free)
        new_solo = solo & ~table.solo_reached
        seeded = seeds(solo) & states
        reached = reached1 | seeded | (joint_predecessors(size, reached2, waits=True) & states)
        moving = moving1 | seeded | (joint_predecessors(size, moving2, waits=False) & states)
        new = reached & ~reached1
        digits = -(cost >> jnp.arange(bits, dtype=jnp.uint32) & 1)
        table = dataclasses.replace(
            table,
            cost=table.cost | (new & digits[:, None, None]),
            wait=table.wait | (new & ~moving),
            solo=table.solo | (new_solo[:, None] & digits[None, :, None]),
            solo_reached=solo,
        )
        # A layer depends on the two before it: after two without news nothing can follow.
        grew = jnp.any(new != 0) | jnp.any(new_solo != 0)
        return cost + 1, table, (reached1, reached), (moving1, moving), jnp.where(grew, 0, quiet + 1)

    def going(carry):
        cost, *_, quiet = carry
        return (quiet < 2) & (cost < (1 << bits))

    solo = parked & solo_free
    start = seeds(solo) & states
    none = jnp.zeros_like(start)
    table = CostTable(
        cost=jnp.zeros((bits, *start.shape), jnp.uint32),
        reached=start,
        wait=none,
        solo=jnp.zeros((2, bits, *free.shape), jnp.uint32),
        solo_reached=solo,
        goals=goals,
        complete=jnp.array(False),
    )
    carry = (jnp.uint32(1), table, (none, start), (none, start), jnp.int32(0))
    _, table, (_, reached), _, quiet = jax.lax.while_loop(going, layer, carry)
    return dataclasses.replace(table, reached=reached, complete=quiet >= 2)


def makespan_flood(size: int, free: jax.Array, goals: jax.Array, starts: jax.Array, solvable: jax.Array) -> jax.Array:
    """The optimal makespan of each board: int32 [32], -1 where not `solvable`.

    Args: free uint32 [N]; goals, starts int32 [2, 32], padded cells; solvable bool [32]. Waiting is legal, so the set
    R_t = pre(R_{t-1}) only grows, and t counts the layers that miss the starts.
    """
    count = cell_count(size)
    states = joint_states(free)
    lanes = jnp.arange(BOARDS_PER_WORD)

    def missing(reached):
        return solvable & (bit(reached[starts[0], starts[1]], lanes) == 0)

    def layer(carry):
        reached, makespan = carry
        makespan = makespan + missing(reached)
        return joint_predecessors(size, reached, waits=True) & states, makespan

    def going(carry):
        return jnp.any(missing(carry[0]))

    start = one_hot(goals[0], count)[:, None] & one_hot(goals[1], count)[None] & states
    _, makespan = jax.lax.while_loop(going, layer, (start, jnp.zeros(BOARDS_PER_WORD, jnp.int32)))
    return jnp.where(solvable, makespan, -1)


def joint_states(free: jax.Array) -> jax.Array:
    """Every joint state of two agents: uint32 [N, N], both cells free and different."""
    different = jnp.where(jnp.eye(free.shape[0], dtype=bool), jnp.uint32(0), jnp.uint32(0xFFFFFFFF))
    return free[:, None] & free[None] & different


def neighbours(size: int, reached: jax.Array) -> jax.Array:
    """Cells from which one move leads into `reached`: uint32 [..., N]."""
    up, down, left, right = (shift(reached, by, reached.ndim - 1) for by in offsets(size)[:4])
    return up | down | left | right


def joint_predecessors(size: int, reached: jax.Array, *, waits: bool) -> jax.Array:
    """States from which a joint move leads into `reached`, uint32 [N, N]; swaps excluded, holes not masked.

    With `waits`, agents may stay; without, both must move. The moves of the two agents are independent but for the
    swap, so the set is a shift along A's axis, then along B's. A move a of A can be half of a swap only where it ends
    with B on the cell that A left, a "ribbon" of states (x, x - a); those are left out of A's shift and added apart.
    """
    moves = offsets(size)[:4]
    count = reached.shape[0]
    ribbon = {by: jnp.asarray(_ribbon_mask(count, by)) for by in moves}
    after_a = reached if waits else jnp.zeros_like(reached)
    for by in moves:
        after_a = after_a | shift(reached & ~ribbon[-by], by, 0)
    before = after_a if waits else jnp.zeros_like(reached)
    for by in moves:
        before = before | shift(after_a, by, 1)
    # A leaves x for x + a and B, coming from x + d, d != a, follows into x.
    left_by_a = {by: shift(_diagonal(reached, -by), by, 0) for by in moves}
    for from_b in moves:
        followed = jnp.zeros_like(left_by_a[from_b])
        for by in moves:
            followed = followed | (left_by_a[by] if by != from_b else 0)
        before = before | (followed[:, None] & ribbon[from_b])
    return before


def _ribbon_mask(count: int, by: int) -> np.ndarray:
    """uint32 [N, N]: all ones on the states (x, x + by)."""
    return np.where(np.eye(count, k=by, dtype=bool), np.uint32(0xFFFFFFFF), np.uint32(0))


def _diagonal(reached: jax.Array, by: int) -> jax.Array:
    """The states (x, x + by) of a set, by x: uint32 [N]."""
    diagonal = jnp.diagonal(reached, by)
    return jnp.pad(diagonal, (max(0, -by), max(0, by)))
