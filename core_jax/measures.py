"""What makes boards hard, counted on 32 boards to a word: the lay of the free cells, and the shortest ways.

Sets of cells are uint32 [N, W], or of each agent [K, N, W]: the words come last. Counts are int32 [B], B = 32 W.
"""

import functools
import itertools
from collections.abc import Sequence

import chex
import flax.struct
import jax
import jax.numpy as jnp

from core_jax.bitboards import (
    BOARDS_PER_WORD,
    any_cell,
    bit,
    by_word,
    cell_count,
    cell_index,
    offsets,
    one_hot,
    pack_cells,
    read_spaced,
    shift,
    spaced,
)
from core_jax.team import pairs_of
from core_jax.types import DOWN, LEFT, RIGHT, UP, Board

CLOCKWISE = ((UP, RIGHT), (RIGHT, DOWN), (DOWN, LEFT), (LEFT, UP))  # with a diagonal neighbour between each two
CONFLICTS = ("vertex_conflicts", "target_conflicts", "swap_conflicts", "cardinal_conflicts")


@flax.struct.dataclass
class Walk:
    """All agents on their shortest ways at one time; who is home stays.

    here: uint32 [2, K, N', W], `spaced` cells: where each agent is on its first shortest path, and all where it can be
    on any. so_far: [2, K, N, W], the same over time. shared: [N, W], where two agents could be at one time. away: int32
    [K, B], steps taken. conflicts: int32 [4, B], as CONFLICTS.
    """

    here: jax.Array
    so_far: jax.Array
    shared: jax.Array
    away: jax.Array
    conflicts: jax.Array


@jax.jit
def measures(boards: Board) -> dict[str, jax.Array]:
    """The counts of `terrain` and `ways` of B boards, B a multiple of 32."""
    size = boards.holes.shape[-1]
    free = jnp.moveaxis(jax.vmap(pack_cells)(by_word(~boards.holes)), 0, -1)
    return terrain(size, free) | ways(size, free, _cells(size, boards.starts), _cells(size, boards.goals))


def terrain(size: int, free: jax.Array) -> dict[str, jax.Array]:
    """Counts of cells: free; links, pairs of neighbours; dead_ends, of one neighbour; corridors, of two or fewer.

    bottlenecks: cells whose neighbours are not connected with each other within the eight cells around, but make two
    groups or more (the connectivity number of Yokoi, Toriwaki and Fukumura, 1975); all articulation points are such.
    """
    chex.assert_shape(free, (cell_count(size), None))
    by = offsets(size)
    near = [shift(free, step, 0) for step in by[:4]]
    at_corner = [shift(free, by[one] + by[other], 0) for one, other in CLOCKWISE]
    # Going round, a group ends at each neighbour from which no way leads to the next.
    ends = [near[one] & ~(corner & near[other]) for (one, other), corner in zip(CLOCKWISE, at_corner, strict=True)]
    one, two, three = _at_least(near, 3)
    return {
        "free_cells": _count(free),
        "links": _count(free & near[RIGHT]) + _count(free & near[DOWN]),
        "dead_ends": _count(free & one & ~two),
        "corridors": _count(free & ~three),
        "bottlenecks": _count(free & _at_least(ends, 2)[1]),
    }


def ways(size: int, free: jax.Array, starts: jax.Array, goals: jax.Array) -> dict[str, jax.Array]:
    """What the agents meet on their shortest ways, each alone; -1 on boards on which an agent has no way.

    makespan_bound, cost_bound: maximum and sum of the distances. An agent's first shortest path takes of the moves that
    bring it nearer the first of U, D, L, R. On these paths, for all pairs of agents and all steps: vertex_conflicts;
    target_conflicts, those of them on the goal of one of the two; swap_conflicts. path_overlap: cells on two or more of
    these paths. mdd_nodes: the sizes of the multi-valued decision diagrams (Sharon et al., 2013), all that an agent
    can reach at each time on a shortest path, added up. mdd_overlap: cells where two agents can be at one time.
    cardinal_conflicts: times and pairs of agents that have one and the same cell to be in, so that no choice of
    shortest paths avoids it (Boyarski et al., 2015).
    """
    nearer, ready = _nearer(size, free, starts, goals)
    connected = functools.reduce(jnp.bitwise_and, any_cell(ready))
    walk = _walk(size, nearer, starts & connected, goals & free)
    found = {
        "makespan_bound": jnp.max(walk.away, axis=0),
        "cost_bound": jnp.sum(walk.away, axis=0),
        **dict(zip(CONFLICTS, walk.conflicts, strict=True)),
        "path_overlap": _count(_at_least(walk.so_far[0], 2)[1]),
        "mdd_nodes": sum(_count(cells) for cells in walk.so_far[1]),
        "mdd_overlap": _count(walk.shared),
    }
    return {name: jnp.where(_lanes(connected) == 1, count, -1) for name, count in found.items()}


def _nearer(size: int, free: jax.Array, starts: jax.Array, goals: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    """For each move the cells [K, N, W] from which it leads nearer to the goal, and the starts that have a way.

    A flood from the goals, until all starts are reached or nothing is new.
    """

    def layer(carry):
        reached, nearer, _ = carry
        beside = [read_spaced(size, reached, by) for by in offsets(size)[:4]]
        before = read_spaced(size, reached)
        new = functools.reduce(jnp.bitwise_or, beside) & free & ~before
        nearer = [known | (new & near) for known, near in zip(nearer, beside, strict=True)]
        after = before | new
        go_on = jnp.any(new != 0) & jnp.any(starts & ~after != 0)
        return jax.lax.dynamic_update_slice(reached, after, (0, size + 1, 0)), nearer, go_on

    begin = spaced(size, goals & free)
    reached, nearer, _ = jax.lax.while_loop(
        lambda carry: carry[2], layer, (begin, [jnp.zeros_like(goals)] * 4, jnp.array(True))
    )
    return nearer, starts & read_spaced(size, reached)


def _walk(size: int, nearer: list[jax.Array], starts: jax.Array, goals: jax.Array) -> Walk:
    """All agents from their starts until the last is home."""
    agents, _, words = starts.shape
    one, other = pairs_of(agents).T
    both_goals = goals[one] | goals[other]
    first = [
        move & ~functools.reduce(jnp.bitwise_or, nearer[:d], jnp.zeros_like(move)) for d, move in enumerate(nearer)
    ]
    # By the cell that a move leads into.
    enter = [shift(jnp.stack(moves), -by, 2) for *moves, by in zip(first, nearer, offsets(size), strict=False)]

    def step(walk: Walk) -> Walk:
        before = read_spaced(size, walk.here)
        steps = [read_spaced(size, walk.here, -by) & move for by, move in zip(offsets(size), enter, strict=False)]
        soon = functools.reduce(jnp.bitwise_or, steps, before & goals)
        (at, spread), (left, _) = soon, before
        meeting, shared = at[one] & at[other], spread[one] & spread[other]
        touched = [meeting, meeting & both_goals, left[one] & at[other], at[one] & left[other], shared]
        vertex, target, there, back, both = any_cell(jnp.stack(touched))
        several = _several(size, spread)
        met = jnp.stack([vertex, target, there & back, both & ~(several[one] | several[other])])
        return Walk(
            here=jax.lax.dynamic_update_slice(walk.here, soon, (0, 0, size + 1, 0)),
            so_far=walk.so_far | soon,
            shared=functools.reduce(jnp.bitwise_or, shared, walk.shared),
            away=walk.away + _lanes(any_cell(left & ~goals)),
            conflicts=walk.conflicts + jnp.sum(_lanes(met), axis=1),
        )

    here, boards = jnp.stack([starts, starts]), words * BOARDS_PER_WORD
    begin = Walk(
        here=spaced(size, here),
        so_far=here,
        shared=jnp.zeros_like(starts[0]),
        away=jnp.zeros((agents, boards), jnp.int32),
        conflicts=jnp.zeros((len(CONFLICTS), boards), jnp.int32),
    )
    return jax.lax.while_loop(lambda walk: jnp.any(read_spaced(size, walk.here[0]) & ~goals != 0), step, begin)


def _cells(size: int, cells: jax.Array) -> jax.Array:
    """int32 [B, K, 2] to sets of one cell each, [K, N, W]."""
    index = jnp.moveaxis(by_word(cell_index(size, cells)), 2, 0)  # [K, W, 32]
    return jnp.moveaxis(jax.vmap(jax.vmap(one_hot, (0, None)), (0, None))(index, cell_count(size)), 1, 2)


def _at_least(sets: Sequence[jax.Array] | jax.Array, most: int) -> list[jax.Array]:
    """The cells that are in at least 1, 2, .. `most` of the sets."""
    found = [jnp.zeros_like(sets[0])] * most
    for cells in sets:
        found = [found[0] | cells, *(more | (less & cells) for less, more in itertools.pairwise(found))]
    return found


def _several(size: int, cells: jax.Array) -> jax.Array:
    """Whether more than one cell is set: [K, N, W] to uint32 [K, W]."""
    by_row = jnp.moveaxis(cells.reshape(cells.shape[0], size, size + 1, -1), 1, 0)
    some, several = _at_least(by_row, 2)  # [K, n + 1, W]
    return _at_least(jnp.moveaxis(some, 1, 0), 2)[1] | any_cell(several)


def _count(cells: jax.Array) -> jax.Array:
    """How many cells are set on each board: [N, W] to int32 [B]."""
    return jnp.sum(bit(cells[:, :, None], jnp.arange(BOARDS_PER_WORD)).astype(jnp.int32), axis=0).reshape(-1)


def _lanes(words: jax.Array) -> jax.Array:
    """The bits of words [..., W] by board: int32 [..., B]."""
    bits = bit(words[..., None], jnp.arange(BOARDS_PER_WORD)).astype(jnp.int32)
    return bits.reshape(*words.shape[:-1], -1)
