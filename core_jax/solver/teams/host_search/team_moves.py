"""The moves of a team: agent after agent, each checked against those that chose before it."""

import numpy as np

from lakewright.core_jax.solver.teams.host_search.pair_search import EXACT, bound_pair, pair_entry, pair_tag
from lakewright.core_jax.solver.teams.host_search.workspace import COSTS, MAKESPAN, NO_WAY, PARK, WAIT, Table, Work
from lakewright.core_jax.support.compiled_code import compiled_within


@compiled_within
def open_step(work: Work, mode: int, step: int, variant: int) -> None:
    """Lists the moves of all agents at a step by rising price; `variant` decides the order of equal ones.

    Args: work, mode, variant: see `search_team`; step: the level of the stack.
    """
    parked, left = work.parked[step], work.left[step]
    for place in range(work.members):
        agent = work.order[place]
        if parked >> agent & 1:
            _add_option(work, step, agent, 0, work.cell[step, agent], 0, PARK)
            work.options[step, agent] = 1
        else:
            _list_moves(work, mode, step, agent, parked, left, variant)
    work.turn[step] = 0
    work.tried[step, work.order[0]] = 0
    work.spent[step, 0] = 0
    for pair in range(work.pairs):
        work.excess[step, pair] = 0


@compiled_within
def _list_moves(work: Work, mode: int, step: int, agent: int, parked: int, left: int, variant: int) -> None:
    """Lists the moves of one agent: parking, then moves closer, a wait, and moves away, where the bound allows them.

    Args:
        work, mode: see `search_team`.
        step: the level of the stack.
        agent: the agent.
        parked: the agents that are parked, a set.
        left: how much of the bound is left.
        variant: with the agent, decides which of the four moves comes first.
    """
    cell = work.cell[step, agent]
    distance = work.distance[agent, 0 if mode == MAKESPAN else parked]
    neighbour = work.neighbour[cell]
    first = variant + agent * (variant >> 2)
    here = np.int64(distance[cell])
    count = 0
    if mode != MAKESPAN and cell == work.goal[agent]:
        _add_option(work, step, agent, count, cell, 0, PARK)
        count += 1
    # Prices are slack beyond the step itself: closer 0, a wait 1, away 2. For the makespan each agent must still have
    # time for its own distance; prices only order its moves there.
    for turn in range(4):
        move = (turn + first) & 3
        there = np.int64(neighbour[move])
        if there >= 0 and distance[there] < here:
            _add_option(work, step, agent, count, there, 0, move)
            count += 1
    if (here < left) if mode == MAKESPAN else (mode == COSTS and left >= 1):
        _add_option(work, step, agent, count, cell, 1, WAIT)
        count += 1
    if (here + 1 < left) if mode == MAKESPAN else left >= 2:
        for turn in range(4):
            move = (turn + first) & 3
            there = np.int64(neighbour[move])
            if there >= 0 and here < distance[there] < NO_WAY:
                _add_option(work, step, agent, count, there, 2, move)
                count += 1
    work.options[step, agent] = count


@compiled_within
def _add_option(work: Work, step: int, agent: int, place: int, target: int, price: int, move: int) -> None:
    """Writes one move of an agent at a step."""
    work.target[step, agent, place] = target
    work.price[step, agent, place] = price
    work.move[step, agent, place] = move


@compiled_within
def choose_move(work: Work, table: Table, mode: int, step: int, place: int) -> bool:
    """Chooses the next move of an agent that fits those chosen before it; False if all are tried.

    Args:
        work, table, mode: see `search_team`.
        step: the level of the stack.
        place: the agent's place in `work.order`.
    """
    agent = work.order[place]
    option = work.tried[step, agent]
    while option < work.options[step, agent]:
        price = work.price[step, agent, option]
        if mode != MAKESPAN and work.spent[step, place] + price > work.left[step]:
            option = work.options[step, agent]  # the further ones cost as much or more
            break
        if _move_fits(work, table, mode, step, place, option):
            work.next_cell[step, agent] = work.target[step, agent, option]
            work.next_move[step, agent] = work.move[step, agent, option]
            work.spent[step, place + 1] = work.spent[step, place] + price
            work.tried[step, agent] = option + 1
            return True
        option += 1
    work.tried[step, agent] = option
    return False


@compiled_within
def _move_fits(work: Work, table: Table, mode: int, step: int, place: int, option: int) -> bool:
    """Return True if a move meets no earlier one and leaves every pair and agent enough of the bound.

    Args: option: place of the move among the agent's options; for the others see `choose_move`.
    """
    agent = work.order[place]
    cell, there = work.cell[step, agent], work.target[step, agent, option]
    parks = work.move[step, agent, option] == PARK
    late = 0
    if mode == MAKESPAN:
        rest = work.left[step] - 1
    else:
        rest = work.left[step] - work.spent[step, place] - work.price[step, agent, option]
        if not parks:
            late = _bound_lateness(work, step, agent, there)
            if late > work.allowed[1 << agent]:
                return False
    # Cheap checks first: a cell that is taken, and an exchange of cells; the tables of pairs come last.
    for before in range(place):
        other = work.order[before]
        theirs = work.next_cell[step, other]
        if there == theirs or (there == work.cell[step, other] and theirs == cell):
            return False
    if parks:
        return True
    for before in range(place):
        other = work.order[before]
        if work.next_move[step, other] != PARK and not _pair_fits(
            work, table, mode, step, agent, there, other, rest, late
        ):
            return False
    return True


@compiled_within
def _bound_lateness(work: Work, step: int, agent: int, cell: int) -> int:
    """The least lateness of an agent that is in `cell` after this step: its arrival less its single distance."""
    around = np.int64(work.distance[agent, work.parked[step], cell])
    return step + 1 + around - np.int64(work.distance[agent, 0, work.start[agent]])


@compiled_within
def _pair_fits(
    work: Work, table: Table, mode: int, step: int, agent: int, there: int, other: int, rest: int, late: int
) -> bool:
    """Return True if the excess of two agents after this step is within what is left, and what the others leave them.

    Args:
        work, table, mode: see `search_team`.
        step: the level of the stack.
        agent: the one that chooses.
        there: its cell after the step.
        other: the one that has chosen before.
        rest: what is left of the bound after the agent's move.
        late: the least lateness of the agent.
    """
    theirs = work.next_cell[step, other]
    pair = work.pair[agent, other]
    one, two = (there, theirs) if agent < other else (theirs, there)
    # The table of pairs counts from single distances without parked agents, the bound from those around them.
    detour = 0
    parked = work.parked[step]
    if mode != MAKESPAN and parked:
        detour = _measure_detour(work, agent, parked, there) + _measure_detour(work, other, parked, theirs)
    entry = pair_entry(np.int64(table[mode, pair, one, two]), pair_tag(work))
    excess = entry & 255
    if entry < EXACT and excess <= rest + detour:
        excess = bound_pair(work, table, mode, pair, one, two, rest + detour)
    excess = max(0, excess - detour)
    work.excess[step, pair] = excess
    if excess > rest:
        return False
    both = 1 << agent | 1 << other
    return mode == MAKESPAN or late + excess + _bound_lateness(work, step, other, theirs) <= work.allowed[both]


@compiled_within
def _measure_detour(work: Work, agent: int, parked: int, cell: int) -> int:
    """The number of steps by which parked agents lengthen an agent's way.

    Args:
        work: the workspace.
        agent: the agent.
        parked: the set of parked agents.
        cell: the cell that the agent leaves.
    """
    return np.int64(work.distance[agent, parked, cell]) - np.int64(work.distance[agent, 0, cell])
