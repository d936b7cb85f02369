"""A depth-first search over joint moves for a plan of a team within a bound.

Operator decomposition (Standley 2010): agents choose one after the other, the most conflicted first. A joint state is
abandoned if more is needed than is left of the bound, by the slack or by the excess of a pair or of a matching of
pairs. It is also abandoned if an agent or a pair would be later than the others can afford, or if it failed before with
as much left.
"""

import numpy as np

from lakewright.core_jax.solver.teams.host_search.board_cells import need_distance
from lakewright.core_jax.solver.teams.host_search.failed_states import (
    cells_key,
    has_failed,
    remember_failure,
    rest_key,
    search_key,
)
from lakewright.core_jax.solver.teams.host_search.subset_bounds import bound_by_matchings, set_allowances
from lakewright.core_jax.solver.teams.host_search.team_moves import choose_move, open_step
from lakewright.core_jax.solver.teams.host_search.workspace import MAKESPAN, NO_WAY, PARK, STEPS, Table, Work
from lakewright.core_jax.support.compiled_code import compiled_within

NONE, FOUND, OPEN = range(3)  # no plan is within the bound; a plan is; the search ended before it was decided
CUT, DEEPER, HOME = range(3)


@compiled_within
def search_team(work: Work, table: Table, mode: int, bound: int, members: int, variant: int, nodes: int) -> int:
    """Looks for a plan of the members: NONE, FOUND or OPEN.

    If it is FOUND, its moves are in `work.next_move`, and their number in `work.steps`.

    Args:
        work: the board, and the stack of the search; `work.order` lists the members in the order in which they choose.
        table: the known bounds of pairs of agents.
        mode: the bounded quantity: MOVING, COSTS or MAKESPAN.
        bound: the most slack of the plan, or, for MAKESPAN, its most steps.
        members: the agents that take part, a set.
        variant: decides the order of moves of equal price.
        nodes: joint states after which the search ends.
    """
    last = work.nodes + nodes
    key = search_key(work, mode, bound, members)
    if mode != MAKESPAN:
        set_allowances(work, mode, members, bound)
    for agent in range(work.agents):
        work.cell[0, agent] = work.start[agent] if members >> agent & 1 else 0
    work.parked[0] = 0
    work.left[0] = bound
    open_step(work, mode, 0, variant)
    step = 0
    # At every level s of the stack, `cell[s]`, `parked[s]` and `left[s]` are a joint state that is within the bound and
    # was reached by the moves chosen at the levels before. The agents order[:turn] of a level have chosen moves that
    # fit each other; `tried` is the number of options that each has tried since the agents before it chose.
    while step >= 0:
        place = work.turn[step]
        if place < 0:
            # All joint moves of this state were refuted: so it fails with as much left, or less, from now on.
            rest = rest_key(key, mode, work.parked[step], step)
            remember_failure(work, cells_key(work, step), rest, work.left[step])
            step -= 1
            if step >= 0:
                work.turn[step] = work.members - 1  # the last agent of the state before tries its next move
        elif not choose_move(work, table, mode, step, place):
            work.turn[step] = place - 1  # nothing fits the earlier choices: the agent before chooses again
        elif place < work.members - 1:
            work.turn[step] = place + 1
            work.tried[step, work.order[place + 1]] = 0
        else:
            # All have chosen, so this is a joint move; the turn stays with the last agent for when the search returns.
            work.nodes += 1
            if work.nodes > last or step + 2 >= STEPS:
                return OPEN
            outcome = _apply_moves(work, mode, key, step, members)
            if outcome == HOME:
                work.steps = step + 1
                return FOUND
            if outcome == DEEPER:
                step += 1
                open_step(work, mode, step, variant)
    return NONE


@compiled_within
def _apply_moves(work: Work, mode: int, key: int, step: int, members: int) -> int:
    """Makes the moves that all have chosen: HOME, DEEPER with the next state at step + 1, or CUT.

    Args: key: from `search_key`; for the others see `search_team`.
    """
    parked, left = work.parked[step], work.left[step] - 1
    if mode == MAKESPAN:
        if _are_all_home(work, step):
            return HOME
    else:
        for place in range(work.members):
            agent = work.order[place]
            if work.next_move[step, agent] == PARK:
                parked |= 1 << agent
        if parked == members:
            return HOME
        # Slack is relative to the single distances around those parked, which grow when another agent parks.
        left = work.left[step] - work.spent[step, work.members]
        if parked != work.parked[step]:
            left = _measure_left_around(work, step, parked)
        if left < 0 or not _pairs_fit(work, step, parked, left):
            return CUT
    for agent in range(work.agents):
        work.cell[step + 1, agent] = work.next_cell[step, agent] if members >> agent & 1 else 0
    if has_failed(work, cells_key(work, step + 1), rest_key(key, mode, parked, step + 1), left):
        return CUT
    work.parked[step + 1] = parked
    work.left[step + 1] = left
    return DEEPER


@compiled_within
def _are_all_home(work: Work, step: int) -> bool:
    """Return True if every member is on its goal after the step."""
    for place in range(work.members):
        agent = work.order[place]
        if work.next_cell[step, agent] != work.goal[agent]:
            return False
    return True


@compiled_within
def _measure_left_around(work: Work, step: int, parked: int) -> int:
    """The slack left after agents of `parked` just parked and the others go around them; below 0 if they cannot."""
    left = work.left[step]
    for place in range(work.members):
        agent = work.order[place]
        if not work.parked[step] >> agent & 1:
            left += np.int64(work.distance[agent, work.parked[step], work.cell[step, agent]])
        if not parked >> agent & 1:
            need_distance(work, agent, parked)
            around = np.int64(work.distance[agent, parked, work.next_cell[step, agent]])
            if around == NO_WAY:
                return -1
            left -= 1 + around
    return left


@compiled_within
def _pairs_fit(work: Work, step: int, parked: int, left: int) -> bool:
    """Return True if the excess of all pairs together is within what is left.

    Args:
        work: the workspace.
        step: the level of the stack.
        parked: the set of agents parked after the step.
        left: how much of the bound is left.
    """
    # The sum over pairs counts agents more than once. It is at least what the matchings give, and quicker to find.
    total = 0
    for pair in range(work.pairs):
        excess = work.excess[step, pair]
        if excess > 0:
            one, two = work.first[pair], work.second[pair]
            if (parked >> one & 1) or (parked >> two & 1):
                excess = 0  # what the pair needs is now in the distance around the parked agent
            elif parked != work.parked[step]:
                further = _measure_new_detour(work, step, one, parked) + _measure_new_detour(work, step, two, parked)
                excess = max(0, excess - further)
            work.excess[step, pair] = excess
            total += excess
    return total <= left or (left > 0 and bound_by_matchings(work, work.excess[step]) <= left)


@compiled_within
def _measure_new_detour(work: Work, step: int, agent: int, parked: int) -> int:
    """The number of steps by which agents that just parked lengthen an agent's way.

    Args:
        work: the workspace.
        step: the level of the stack.
        agent: the agent.
        parked: the set of agents parked after the step.
    """
    cell = work.next_cell[step, agent]
    return np.int64(work.distance[agent, parked, cell]) - np.int64(work.distance[agent, work.parked[step], cell])
