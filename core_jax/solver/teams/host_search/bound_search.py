"""A search for the least bound within which a team has a plan, raised step by step, with restarts and bounds of parts.

Invariant of every step: `work.lower[mode, S]` is a proven lower bound on the slack of the agents S, and
`work.upper[mode, S]` the slack of a plan found for them.
"""

import numpy as np
from numba import uint64

from lakewright.core_jax.solver.teams.host_search.subset_bounds import combine_bounds, count_members
from lakewright.core_jax.solver.teams.host_search.team_search import FOUND, NONE, OPEN, search_team
from lakewright.core_jax.solver.teams.host_search.workspace import MOVING, Table, Work
from lakewright.core_jax.support.compiled_code import compiled_within

FIRST_NODES = 60  # of the first of several searches for the same; each further one has half as many more
ROUNDS = 40  # after which they are doubled
IN_ALL = 8  # the most nodes of a board, in units of those for one bound


@compiled_within
def search_with_restarts(work: Work, table: Table, mode: int, bound: int, members: int, nodes: int, most: int) -> int:
    """`search_team` with more nodes each time, and another order of agents and moves; failed states are remembered.

    Args:
        work, table, mode, bound, members: see `search_team`.
        nodes: joint states in all, after which the result is OPEN.
        most: joint states of the board, likewise.
    """
    limit, variant = FIRST_NODES, 0
    last = min(work.nodes + nodes, most)
    while work.nodes < last:
        _order_members(work, members, variant)
        found = search_team(work, table, mode, bound, members, variant, min(limit, last - work.nodes))
        if found != OPEN:
            return found
        variant += 1
        limit = limit * 3 // 2 if variant < ROUNDS else limit * 2
    return OPEN


@compiled_within
def _order_members(work: Work, members: int, variant: int) -> None:
    """Puts the members into `work.order`: by rank, or for further variants shuffled (Fisher-Yates)."""
    count = 0
    for place in range(work.agents):
        if members >> work.rank[place] & 1:
            work.order[count] = work.rank[place]
            count += 1
    work.members = count
    if variant == 0:
        return
    random = uint64(variant * 7919 + 12345)
    for place in range(count - 1, 0, -1):
        random = random * uint64(6364136223846793005) + uint64(1442695040888963407)
        other = np.int64((random >> uint64(33)) % uint64(place + 1))
        work.order[place], work.order[other] = work.order[other], work.order[place]


@compiled_within
def find_least_slack(work: Work, table: Table, mode: int, most_slack: int, nodes: int) -> int:
    """The least slack of a plan of the whole team: FOUND, it is `work.lower[mode]` of all, or NONE up to most_slack.

    A few nodes first; then all sets of three agents, of four and so on are settled because their bounds add up to
    better bounds of the team.

    Args:
        work, table, mode: see `search_team`.
        most_slack: the most slack of a plan to look for.
        nodes: joint states for one bound.
    """
    every = (1 << work.agents) - 1
    most = work.nodes + IN_ALL * nodes
    level = 2
    while work.lower[mode, every] <= most_slack:
        last = level >= work.agents - 1
        few = nodes if last else FIRST_NODES * (level - 1)
        found = search_with_restarts(work, table, mode, work.lower[mode, every], every, few, most)
        if found == FOUND:
            return FOUND
        if found == NONE:
            # Without waits every detour is even.
            work.lower[mode, every] += 2 if mode == MOVING else 1
        elif last:
            return OPEN
        else:
            level += 1
            if not _settle_subsets(work, table, mode, level, most_slack, nodes, most):
                return OPEN
    return NONE


@compiled_within
def _settle_subsets(work: Work, table: Table, mode: int, count: int, most_slack: int, nodes: int, most: int) -> bool:
    """Finds the least slack of all sets of `count` agents; False if nodes end.

    A set whose bounds meet, or whose lower bound rules out the team, is skipped.

    Args: count: agents in a set; most: nodes for the whole board; for the others see `find_least_slack`.
    """
    every = (1 << work.agents) - 1
    for subset in range(every):
        if count_members(subset) != count:
            continue
        while (
            work.upper[mode, subset] > work.lower[mode, subset]
            and work.lower[mode, subset] <= most_slack
            and work.lower[mode, every] <= most_slack
        ):
            found = search_with_restarts(work, table, mode, work.lower[mode, subset], subset, nodes, most)
            if found == OPEN:
                return False
            if found == FOUND:
                work.upper[mode, subset] = work.lower[mode, subset]
            else:
                work.lower[mode, subset] += 2 if mode == MOVING else 1
                combine_bounds(work, mode)
    return True
