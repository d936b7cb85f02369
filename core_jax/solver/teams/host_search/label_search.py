"""The labels of boards, one board after the other, by an order of questions to the search.

1. Single agents: one without a path makes the board unsolvable; the distances bound both optima.
2. Pairs: one without a plan makes the board unsolvable; their excess bounds the slack.
3. If parity and bounds allow it, a brief search for a plan without waits at the lower bound.
4. Else a search for a plan of least cost; if that plan waits, another for a plan of that cost without waits.
5. A search for a plan of smaller makespan than that plan has.
"""

import numpy as np

from lakewright.core_jax.solver.teams.host_search.board_cells import pair_reachable, take_board
from lakewright.core_jax.solver.teams.host_search.bound_search import (
    FIRST_NODES,
    FOUND,
    NONE,
    OPEN,
    find_least_slack,
    search_with_restarts,
)
from lakewright.core_jax.solver.teams.host_search.pair_search import bound_pair, clear_tags
from lakewright.core_jax.solver.teams.host_search.subset_bounds import combine_bounds
from lakewright.core_jax.solver.teams.host_search.workspace import (
    COSTS,
    HIGHEST,
    MAKESPAN,
    MOVING,
    NO_WAY,
    PARK,
    WAIT,
    Answer,
    Answers,
    ManyCells,
    ManyHoles,
    ManyMoves,
    Moves,
    Numbers,
    Table,
    TwoMoves,
    Wanted,
    Work,
    Works,
)
from lakewright.core_jax.support.compiled_code import compiled, compiled_within

SUSPICIOUS = 8  # an excess of a pair above which it is first checked that the pair has a plan at all
MOST_EXCESS, MOST_SLACK = 40, 60  # of a pair, of the team
ANY = -1


@compiled
def search_boards(
    works: Works,
    table: Table,
    holes: ManyHoles,
    starts: ManyCells,
    goals: ManyCells,
    wanted: Wanted,
    nodes: int,
    answers: Answers,
    moves: ManyMoves,
) -> None:
    """Labels B boards, as far as `nodes` go: answers [B], of dtype ANSWER; moves int8 [B, 2, K, T] filled with PAD.

    Args:
        works: one workspace.
        table: the known bounds of pairs of agents.
        holes: bool [B, n, n].
        starts: int32 [B, K, 2].
        goals: int32 [B, K, 2].
        wanted: int8 [B]; 0 or 1 looks for the makespan only if that equals whether a wait is required, ANY always.
        nodes: joint states of one question, after which it is left open.
        answers: [B], written here.
        moves: written here: for the plans of least cost and of least makespan, with all waits.
    """
    work = works[0]
    for board in range(len(holes)):
        answer = answers[board]
        take_board(work, holes[board], starts[board], goals[board])
        clear_tags(work, table)
        _label_board(work, table, np.int64(wanted[board]), nodes, answer, moves[board])
        answer.nodes = work.nodes
        if work.too_long:  # distances are wrong: none of this is certain
            answer.cost_known = answer.wait_known = answer.makespan_known = False
            answer.solvable = True
            answer.slack = answer.makespan = 0
            answer.others[:] = 0
            answer.excess[:] = 0


@compiled_within
def _label_board(work: Work, table: Table, wanted: int, nodes: int, answer: Answer, moves: TwoMoves) -> None:
    """Labels the board of `work`."""
    every = (1 << work.agents) - 1
    answer.solvable = _bound_singles(work, answer) and _bound_pairs(work, table)
    if not answer.solvable:
        return
    least = work.lower[COSTS, every]  # proven by single agents and pairs alone
    _find_least_cost(work, table, nodes, answer, moves[0])
    answer.slack = work.lower[COSTS, every]
    for pair in range(work.pairs):
        answer.excess[pair] = work.lower[COSTS, 1 << work.first[pair] | 1 << work.second[pair]]
    for agent in range(work.agents):
        answer.others[agent] = work.lower[COSTS, every ^ (1 << agent)]
    if answer.wait_known and wanted != ANY and answer.wait != wanted:
        return
    furthest = answer.makespan
    _find_least_makespan(work, table, nodes, answer, moves[1])
    answer.by_bounds = answer.slack == least and not answer.wait and answer.makespan == furthest


@compiled_within
def _bound_singles(work: Work, answer: Answer) -> bool:
    """Bounds both optima by the single distances; False if an agent has no path."""
    answer.alone = answer.makespan = 0
    for agent in range(work.agents):
        distance = np.int64(work.distance[agent, 0, work.start[agent]])
        if distance == NO_WAY:
            return False
        answer.alone += distance
        answer.makespan = max(answer.makespan, distance)
    return True


@compiled_within
def _bound_pairs(work: Work, table: Table) -> bool:
    """Bounds the slack of all sets of agents by the excess of pairs; False if a pair has no plan."""
    work.lower[:] = 0
    work.upper[:] = HIGHEST
    weight = np.zeros(work.agents, np.int64)
    for pair in range(work.pairs):
        first, second = work.first[pair], work.second[pair]
        excess = bound_pair(work, table, COSTS, pair, work.start[first], work.start[second], SUSPICIOUS)
        # A large excess is dear to prove, and where there is no plan it has no end: so that is asked first.
        if excess > SUSPICIOUS:
            if not pair_reachable(work, pair):
                return False
            excess = bound_pair(work, table, COSTS, pair, work.start[first], work.start[second], MOST_EXCESS)
        work.lower[COSTS, 1 << first | 1 << second] = excess
        weight[first] += excess
        weight[second] += excess
    combine_bounds(work, COSTS)
    slack = work.lower[COSTS, (1 << work.agents) - 1]
    for pair in range(work.pairs):
        first, second = work.first[pair], work.second[pair]
        excess = bound_pair(work, table, MOVING, pair, work.start[first], work.start[second], min(slack, MOST_EXCESS))
        work.lower[MOVING, 1 << first | 1 << second] = excess
    combine_bounds(work, MOVING)
    _rank_agents(work, weight)
    return True


@compiled_within
def _rank_agents(work: Work, weight: Numbers) -> None:
    """Sorts the agents by falling weight, equal ones by number."""
    # Insertion sort: the agents before this one are in order, and it moves up past those of less weight.
    for agent in range(work.agents):
        place = agent
        while place > 0 and weight[work.rank[place - 1]] < weight[agent]:
            work.rank[place] = work.rank[place - 1]
            place -= 1
        work.rank[place] = agent


@compiled_within
def _find_least_cost(work: Work, table: Table, nodes: int, answer: Answer, moves: Moves) -> None:
    """Finds the least slack, a plan of it, and whether it takes a wait, as far as nodes go."""
    every = (1 << work.agents) - 1
    slack = work.lower[COSTS, every]
    answer.cost_known = answer.wait_known = answer.wait = False
    # A plan without waits at the lower bound settles all three: it has an even slack, as every detour has.
    may_go_on = slack % 2 == 0 and work.lower[MOVING, every] <= slack
    if (
        may_go_on
        and search_with_restarts(work, table, MOVING, slack, every, FIRST_NODES, work.nodes + FIRST_NODES) == FOUND
    ):
        answer.cost_known = answer.wait_known = True
        answer.steps = _write_plan(work, moves)
        return
    if find_least_slack(work, table, COSTS, MOST_SLACK, nodes) != FOUND:
        return
    answer.cost_known = True
    answer.steps = _write_plan(work, moves)
    slack = work.lower[COSTS, every]
    if not _has_wait(moves, answer.steps):
        answer.wait_known = True
        return
    # The plan found waits; a wait is required unless another of the same cost does not.
    found = NONE if slack % 2 else find_least_slack(work, table, MOVING, slack, nodes)
    answer.wait_known, answer.wait = found != OPEN, found == NONE
    if found == FOUND:
        answer.steps = _write_plan(work, moves)


@compiled_within
def _find_least_makespan(work: Work, table: Table, nodes: int, answer: Answer, moves: Moves) -> None:
    """Finds the least makespan, and a plan of it unless the plan of least cost has it."""
    every = (1 << work.agents) - 1
    # The plan of least cost is a plan, so only shorter ones are looked for.
    most = answer.steps - 1 if answer.cost_known else HIGHEST
    least = answer.makespan
    for pair in range(work.pairs):
        one, other = work.start[work.first[pair]], work.start[work.second[pair]]
        least = max(least, bound_pair(work, table, MAKESPAN, pair, one, other, most))
    last = work.nodes + nodes
    found = NONE  # every makespan below `least` is refuted
    while found == NONE and least <= most:
        found = search_with_restarts(work, table, MAKESPAN, least, every, nodes, last)
        least += found == NONE
    answer.makespan = least
    answer.makespan_known = found == FOUND or (found == NONE and answer.cost_known)
    answer.fastest_steps = 0
    if found == FOUND:
        answer.fastest_steps = _write_plan(work, moves)


@compiled_within
def _write_plan(work: Work, moves: Moves) -> int:
    """Writes the plan that was found last to int8 [K, T], and returns its length."""
    length = 0
    for agent in range(work.agents):
        for step in range(moves.shape[1]):
            move = work.next_move[step, agent]
            moves[agent, step] = move if step < work.steps and move != PARK else -1
            if moves[agent, step] >= 0:
                length = max(length, step + 1)
    return length


@compiled_within
def _has_wait(moves: Moves, steps: int) -> bool:
    """Return True if an agent waits within the first steps of int8 [K, T]."""
    for agent in range(len(moves)):
        for step in range(steps):
            if moves[agent, step] == WAIT:
                return True
    return False
