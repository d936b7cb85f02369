"""The shortest paths of single agents and the conflicts on them; 32 boards in a word.

Sets of cells are uint32 [N, W], or of each agent [K, N, W]: the words come last.
"""

import functools
import itertools

import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake.bitboards import (
    any_cell,
    at_least,
    by_board,
    count_sets,
    move_offsets,
    read_spaced,
    shift_cells,
    space_cells,
)
from lakewright.core_jax.solver.single_agent.distances import flood_distances
from lakewright.core_jax.types import OPPOSITE


@flax.struct.dataclass
class Walk:
    """All agents on their shortest paths; an agent that has arrived stays.

    now: uint32 [2, K, N', W], spaced cells: where each agent is on its first shortest path, and all cells where it
    can be at that time on any. walked: [2, K, N, W], the same over all times. only: [K, N, W], cells of first paths
    that are the only ones where the agent can be at their time. By pairs of agents, [P, N, W]: met, where their first
    paths meet; swapped, the cells that the first leaves when it swaps with the second on these paths; near, where both
    can be at the same time.
    """

    now: jax.Array
    walked: jax.Array
    only: jax.Array
    met: jax.Array
    swapped: jax.Array
    near: jax.Array


def conflicts_on_shortest_paths(
    size: int, free: jax.Array, starts: jax.Array, goals: jax.Array
) -> dict[str, jax.Array]:
    """Lengths of the shortest paths and conflicts on them, int32 [32 W]; -1 on boards where an agent has no path.

    Args:
        size: n, the cells on a side of the boards.
        free: uint32 [N, W].
        starts, goals: uint32 [K, N, W], one cell each, no two goals the same.

    makespan_bound, cost_bound: maximum and sum of the distances. An agent's first shortest path takes the first of the
    moves U, D, L, R that brings it nearer. On these paths, for all pairs of agents and all steps: vertex_conflicts;
    target_conflicts, the ones on the goal of one of the two; swap_conflicts. path_overlap: cells on two or more of
    these paths. mdd_nodes: the sizes of the multi-valued decision diagrams (Sharon et al., 2013), all that an agent
    can reach at each time on a shortest path, added up. mdd_overlap: cells where two agents can be at one time.
    cardinal_conflicts: times and pairs of agents that have one and the same cell to be in, so that no choice of
    shortest paths avoids it (Boyarski et al., 2015).
    """
    nearer, reached = _find_nearer(size, free, goals)
    connected = functools.reduce(jnp.bitwise_and, any_cell(starts & reached))
    walk = _walk_agents(size, nearer, starts & connected, goals & free)
    paths, spread = walk.walked
    (goal, other_goal), (only, other_only) = _split_pairs(goals), _split_pairs(walk.only)
    sets = {
        "vertex_conflicts": walk.met,
        "target_conflicts": walk.met & (goal | other_goal),
        "cardinal_conflicts": walk.met & only & other_only,
        "swap_conflicts": walk.swapped,
        "path_overlap": at_least(paths, 2)[1][None],
        "mdd_nodes": spread,
        "mdd_overlap": functools.reduce(jnp.bitwise_or, walk.near, jnp.zeros_like(free))[None],
    }
    counts = count_sets({"paths": paths} | sets)
    # A shortest path enters each of its cells once, so its cells less one are its length.
    distance = counts.pop("paths") - 1
    features = {name: jnp.sum(count, axis=0) for name, count in counts.items()}
    features |= {"makespan_bound": jnp.max(distance, axis=0), "cost_bound": jnp.sum(distance, axis=0)}
    return {name: jnp.where(by_board(connected) == 1, count, -1) for name, count in features.items()}


def _find_nearer(size: int, free: jax.Array, goals: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    """For each move the cells [K, N, W] from which it leads nearer to the goal, and the cells that reach the goal."""
    agents, cells, words = goals.shape
    by_agent = jnp.moveaxis(goals, 2, 1).reshape(-1, cells)
    # Neighbours differ in distance by one, so its last two digits show which of them is nearer.
    digits, reached = flood_distances(size, jnp.tile(free.T, (agents, 1)), by_agent, 2)
    odd, twos, reached = (jnp.moveaxis(field.reshape(agents, words, cells), 1, 2) for field in (*digits, reached))
    sought = twos ^ ~odd  # the second digit of a distance less one
    return [
        reached & shift_cells(reached, by, 1) & ~(shift_cells(twos, by, 1) ^ sought) for by in move_offsets(size)[:4]
    ], reached


def _walk_agents(size: int, nearer: list[jax.Array], starts: jax.Array, goals: jax.Array) -> Walk:
    """Walks all agents from their starts until the last has arrived.

    On shortest paths two agents meet at most once in a cell because each is there once and goals are distinct: so sets
    of cells suffice for counting.

    Args:
        size: n, the cells on a side of the boards.
        nearer: one uint32 [K, N, W] for each of the four moves: the cells from which it leads nearer to the goal.
        starts: uint32 [K, N, W], one cell each, or no cell on a board without paths.
        goals: uint32 [K, N, W], one cell each.
    """
    # U before D before L before R: of the moves that lead nearer only the first is taken, so each agent has one path.
    taken = itertools.accumulate(nearer[:3], jnp.bitwise_or, initial=jnp.zeros_like(nearer[0]))
    first = [move & ~before for move, before in zip(nearer, taken, strict=True)]
    # By the cell that a move leads into.
    enter = [
        shift_cells(jnp.stack(moves), -by, 2) for *moves, by in zip(first, nearer, move_offsets(size), strict=False)
    ]
    firsts = [_split_pairs(move) for move in first]
    swaps = [firsts[d][0] & shift_cells(firsts[OPPOSITE[d]][1], by, 1) for d, by in enumerate(move_offsets(size)[:4])]

    def step(walk: Walk) -> Walk:
        # Conflicts are those of the state that is carried in, so that nothing of the next is computed twice.
        at, spread = now = read_spaced(size, walk.now)
        one, other = _split_pairs(at)
        _, others = _split_pairs(walk.now[0])
        beside = [read_spaced(size, others, by) & swap for by, swap in zip(move_offsets(size), swaps, strict=False)]
        steps = [read_spaced(size, walk.now, -by) & move for by, move in zip(move_offsets(size), enter, strict=False)]
        soon = functools.reduce(jnp.bitwise_or, steps, now & goals)
        return Walk(
            now=jax.lax.dynamic_update_slice(walk.now, soon, (0, 0, size + 1, 0)),
            walked=walk.walked | now,
            only=walk.only | (at & ~any_cell(spread & ~at)[:, None]),
            met=walk.met | (one & other),
            swapped=walk.swapped | (one & functools.reduce(jnp.bitwise_or, beside)),
            near=walk.near | jnp.bitwise_and(*_split_pairs(spread)),
        )

    here, homes = jnp.stack([starts, starts]), goals & any_cell(starts)[:, None]
    none = jnp.zeros_like(_split_pairs(starts)[0])
    begin = Walk(now=space_cells(size, here), walked=here, only=starts, met=none, swapped=none, near=none)
    return jax.lax.while_loop(lambda walk: jnp.any(homes & ~walk.walked[0] != 0), step, begin)


def _split_pairs(sets: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Values by agent, [K, ...], for the first and of the second agent of all pairs, [P, ...] each."""
    pairs = list(itertools.combinations(range(len(sets)), 2))
    if not pairs:
        return sets[:0], sets[:0]
    first, second = ([sets[agent] for agent in agents] for agents in zip(*pairs, strict=True))
    return jnp.stack(first), jnp.stack(second)
