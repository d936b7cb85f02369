"""The distance flood of three agents, backward from the goals, on bitboards.

A joint state of three agents is a triple of padded cells, 32 boards to a word. The sets live in flat buffers: agents B
and C have one more row of cells, always empty, and there is room at both ends, so that every move of every agent is a
slice at a constant offset.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

from core_jax.bitboards import BOARDS_PER_WORD, bit, cell_count, offsets, one_hot, shift
from core_jax.floods import neighbours

FULL = np.uint32(0xFFFFFFFF)


def triple_makespan_flood(size: int, free: jax.Array, goals: jax.Array, starts: jax.Array) -> jax.Array:
    """The optimal makespan of three agents on each board: int32 [32], -1 where there is no plan.

    Args: free uint32 [N]; goals, starts int32 [3, 32], padded cells. Waiting is legal, so R_t = pre(R_{t-1}) only
    grows: the first layer that holds the starts is the makespan, and a layer without news proves that there is no plan.
    """
    states, start, met = _setting(size, free, goals, starts)

    def layer(carry):
        time, reached, makespan, _ = carry
        after = triple_predecessors(size, reached, waits=True) & states
        makespan = jnp.where((makespan < 0) & met(after), time, makespan)
        return time + 1, after, makespan, jnp.any(after != reached)

    def going(carry):
        *_, makespan, growing = carry
        return growing & jnp.any(makespan < 0)

    makespan = jnp.where(met(start), 0, -1)
    return jax.lax.while_loop(going, layer, (jnp.int32(1), start, makespan, jnp.array(True)))[2]


def triple_cost_flood(size: int, free: jax.Array, goals: jax.Array, starts: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The optimal sum of costs int32 [32], -1 where there is no plan, and whether every plan of that cost waits.

    In layers of cost c, as `core_jax.floods.sum_of_costs_flood` does for two agents: R_c = R_{c-1} | seeds_c |
    pre(R_{c-3}). The seeds are the states in which one agent is parked for good, and the others, with its goal blocked,
    need c; these come from layers for two agents, whose seeds come from layers for one.
    """
    count, wide = cell_count(size), cell_count(size) + size + 1
    states, start, met = _setting(size, free, goals, starts)
    home = jnp.stack([one_hot(goals[agent], count) for agent in range(3)])
    others = [(1, 2), (0, 2), (0, 1)]
    # Room for those who walk while others are parked: all others, or one other.
    free_alone = jnp.stack([free & ~home[first] & ~home[second] for first, second in others])
    free_pair = jnp.stack([pair_states(free & ~home[parked]) for parked in range(3)])

    def seeds_of_pairs(alone):
        return jnp.stack(
            [_outer(home[first], alone[second]) | _outer(alone[first], home[second]) for first, second in others]
        )

    def seeds_of_triples(pairs):
        a = _outer(home[0], pairs[0])
        b = pairs[1][:, None] & home[1][:, None]
        c = pairs[2][:, :, None] & home[2]
        return jnp.pad(a | b | c, ((0, 0), (0, wide - count), (0, wide - count))) & states

    def layer(carry):
        cost, alone, pairs, triples, found, waits, quiet = carry
        before_all = (alone, pairs[True][1], triples[True][2])
        alone = alone | jnp.stack([neighbours(size, alone[agent]) & free_alone[agent] for agent in range(3)])
        pairs, triples = (dict(sets) for sets in (pairs, triples))
        for kind in (True, False):
            before, last = pairs[kind]
            follow = jax.vmap(functools.partial(pair_predecessors, size, waits=kind))(before)
            pairs[kind] = last, last | ((seeds_of_pairs(alone) | follow) & free_pair)
            first, before, last = triples[kind]
            follow = triple_predecessors(size, first, waits=kind) & states
            triples[kind] = before, last, last | seeds_of_triples(pairs[kind][1]) | follow
        new = (found < 0) & met(triples[True][2])
        waits = jnp.where(new, ~met(triples[False][2]), waits)
        # A layer depends on the three before it: after three without news nothing can follow.
        after_all = (alone, pairs[True][1], triples[True][2])
        grew = jnp.stack([jnp.any(before != after) for before, after in zip(before_all, after_all, strict=True)]).any()
        quiet = jnp.where(grew, 0, quiet + 1)
        return cost + 1, alone, pairs, triples, jnp.where(new, cost, found), waits, quiet

    def going(carry):
        return jnp.any(carry[4] < 0) & (carry[6] < 3)

    alone = home & free_alone
    pairs = seeds_of_pairs(alone) & free_pair
    none = jnp.zeros_like(start)
    carry = (
        jnp.int32(1),
        alone,
        dict.fromkeys((True, False), (jnp.zeros_like(pairs), pairs)),
        dict.fromkeys((True, False), (none, none, start)),
        jnp.where(met(start), 0, -1),
        jnp.zeros(BOARDS_PER_WORD, bool),
        jnp.int32(0),
    )
    *_, found, waits, _ = jax.lax.while_loop(going, layer, carry)
    return found, waits


def _setting(size: int, free: jax.Array, goals: jax.Array, starts: jax.Array) -> tuple:
    """All joint states, those with everyone home, and a function that tells which boards' starts are in a set."""
    count = cell_count(size)
    chex.assert_shape(free, (count,))
    chex.assert_shape([goals, starts], (3, BOARDS_PER_WORD))
    wide = count + size + 1
    padded = jnp.pad(free, (0, size + 1))
    states = _distinct(count, wide) & free[:, None, None] & padded[:, None] & padded
    home = _outer(one_hot(goals[0], count), _outer(one_hot(goals[1], wide), one_hot(goals[2], wide))) & states
    lanes = jnp.arange(BOARDS_PER_WORD)
    return states, home, lambda reached: bit(reached[starts[0], starts[1], starts[2]], lanes).astype(bool)


def _outer(first: jax.Array, rest: jax.Array) -> jax.Array:
    """All combinations of a state of one agent and a state of others: uint32 [N, ...]."""
    return first.reshape(-1, *[1] * rest.ndim) & rest


def triple_predecessors(size: int, reached: jax.Array, *, waits: bool) -> jax.Array:
    """States from which a joint move leads into `reached`, uint32 [N, N + n + 1, N + n + 1]; holes are not masked.

    With `waits`, agents may stay; without, all must move.

    The moves of the agents are independent but for swaps: a shift along each agent's axis in turn. Where B enters the
    cell that A leaves (y' = x), A must not have gone to where B comes from; these states are left out of the shift and
    added apart, direction by direction; and likewise where C enters the cell that A or B leaves. Two agents in a swap
    and the third in one of its cells would meet, so no more than one swap needs a look at a time.
    """
    count, wide, _ = reached.shape
    moves = offsets(size)[:4]
    opposite = dict(zip(moves, (moves[1], moves[0], moves[3], moves[2]), strict=True))
    plane = wide * wide
    guard = (size + 2) * plane
    flat = jnp.pad(reached.reshape(-1), guard)
    cells = np.arange(count)

    def shifted(buffer, by):
        return jax.lax.slice_in_dim(buffer, guard + by, guard + by + count * plane).reshape(count, wide, wide)

    def along(buffer, unit):
        after = shifted(buffer, 0) if waits else jnp.uint32(0)
        for by in moves:
            after = after | shifted(buffer, by * unit)
        return after

    def all_but(sets, by):
        return jnp.bitwise_or.reduce(jnp.stack([sets[move] for move in moves if move != opposite[by]]))

    # B enters the cell x that A left for x + a: [x, z'].
    entered = {by: _every(flat, guard + by * plane, count, plane + wide, wide) for by in moves}
    # C enters the cell x that A left for x + a: [x, y'], then B's moves: [x, y].
    behind_a = {by: _every(flat, guard + by * plane, count, plane + 1, plane)[:, ::wide] for by in moves}
    behind_a = {by: _moved(size, behind_a[by], 1, waits) for by in moves}
    # C enters the cell y that B left for y + b: [x', y], then A's moves: [x, y].
    by_plane = [jax.lax.slice_in_dim(flat, guard + by * wide, guard + by * wide + count * plane) for by in moves]
    rows = [plane_.reshape(count, plane)[:, : count * (wide + 1)] for plane_ in by_plane]
    behind_b = {
        by: _moved(size, row.reshape(count, count, wide + 1)[:, :, 0], 0, waits)
        for by, row in zip(moves, rows, strict=True)
    }

    after_a = along(flat, plane) & jnp.asarray(_differ(count, wide))[:, :, None]
    after_b = along(jnp.pad(after_a.reshape(-1), guard), wide)
    for by in moves:
        y, inside = _in_range(cells - by, count)
        after_b = after_b.at[cells[inside], y].set(after_b[cells[inside], y] | all_but(entered, by)[inside])
    after_b = after_b & jnp.asarray(_differ(count, wide))[:, None] & jnp.asarray(_differ(wide, wide))
    after_c = along(jnp.pad(after_b.reshape(-1), guard), 1)
    for by in moves:
        z, inside = _in_range(cells - by, count)
        here = cells[inside]
        after_c = after_c.at[here, :, z].set(after_c[here, :, z] | all_but(behind_a, by)[inside])
        after_c = after_c.at[:, here, z].set(after_c[:, here, z] | all_but(behind_b, by)[:, inside])
    return after_c


def _every(flat: jax.Array, begin: int, count: int, stride: int, width: int) -> jax.Array:
    """`count` stretches of `width` words, each `stride` after the one before: uint32 [count, width]."""
    return jax.lax.slice_in_dim(flat, begin, begin + count * stride).reshape(count, stride)[:, :width]


def _moved(size: int, states: jax.Array, axis: int, waits: bool) -> jax.Array:
    """States from which a move along one axis leads into `states`, both axes kept as they are."""
    after = states if waits else jnp.zeros_like(states)
    for by in offsets(size)[:4]:
        after = after | shift(states, by, axis)
    return after


def _in_range(cells: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    inside = (cells >= 0) & (cells < count)
    return cells[inside], inside


def _differ(count: int, wide: int) -> np.ndarray:
    """uint32 [count, wide]: all ones where the two cells differ."""
    return np.where(np.eye(count, wide, dtype=bool), np.uint32(0), FULL)


def _distinct(count: int, wide: int) -> jax.Array:
    """uint32 [count, wide, wide]: all ones where all three cells differ."""
    first, rest = jnp.asarray(_differ(count, wide)), jnp.asarray(_differ(wide, wide))
    return first[:, :, None] & first[:, None] & rest


def pair_states(free: jax.Array) -> jax.Array:
    """Every joint state of two agents: uint32 [N, N], both cells free and different."""
    different = jnp.where(jnp.eye(free.shape[0], dtype=bool), jnp.uint32(0), jnp.uint32(0xFFFFFFFF))
    return free[:, None] & free[None] & different


def pair_predecessors(size: int, reached: jax.Array, *, waits: bool) -> jax.Array:
    """States from which a joint move leads into `reached`, uint32 [N, N]; swaps excluded, holes not masked.

    With `waits`, agents may stay; without, both must move. The moves of the two agents are independent but for the
    swap, so the set is a shift along A's axis, then along B's. A move a of A can be half of a swap only where it ends
    with B on the cell that A left, a "ribbon" of states (x, x - a); those are left out of A's shift and added apart.
    """
    moves = offsets(size)[:4]
    count = reached.shape[0]
    ribbon = {by: jnp.asarray(_ribbon(count, by)) for by in moves}
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


def _ribbon(count: int, by: int) -> np.ndarray:
    """uint32 [N, N]: all ones on the states (x, x + by)."""
    return np.where(np.eye(count, k=by, dtype=bool), np.uint32(0xFFFFFFFF), np.uint32(0))


def _diagonal(reached: jax.Array, by: int) -> jax.Array:
    """The states (x, x + by) of a set, by x: uint32 [N]."""
    diagonal = jnp.diagonal(reached, by)
    return jnp.pad(diagonal, (max(0, -by), max(0, by)))
