"""The search on the host, alone: against floods of two agents."""

import itertools

import numpy as np
import pytest

from lakewright.core_jax.lake import verify
from lakewright.core_jax.solver import solve
from lakewright.core_jax.solver.memory import SEARCH_BYTES
from lakewright.core_jax.solver.teams.host_search.host_search import search_batch
from lakewright.core_jax.solver.teams.host_search.workspace import list_matchings, make_workspace
from lakewright.core_jax.types import Failure
from tests.support.boards.sample_boards import assert_every, drawing, mixed_boards, optima
from tests.support.boards.sample_boards import batch as batch_of


@pytest.mark.parametrize(("size", "count"), [(3, 400), (5, 300)])
def test_two_agents_get_the_labels_of_their_floods(size, count):
    boards = mixed_boards(size, count, size)
    found, known = search_batch(boards), solve(boards)
    answers = found.answers
    assert_every(answers["solvable"] == known.solvable, boards)
    decided = answers["cost_known"] & answers["wait_known"] & answers["makespan_known"]
    assert_every(decided | ~known.solvable, boards)
    labels = np.stack([answers["makespan"], answers["alone"] + answers["slack"], answers["wait"]], axis=1)
    assert_every((labels == optima(known)).all(axis=1) | ~known.solvable, boards, found=labels, known=optima(known))
    for moves, objective in ((found.moves, "sum_of_costs"), (found.fastest, "makespan")):
        played = verify(boards, moves)
        valid = (played.failure == Failure.NONE) & (getattr(played, objective) == getattr(known, objective))
        assert_every(valid | ~known.solvable, boards, moves=moves)


def test_what_is_left_open_has_bounds_that_are_not_too_high():
    boards = mixed_boards(5, 150, 5, agents=4)
    known, answers = solve(boards), search_batch(boards, nodes=1).answers
    left = known.solvable & ~(answers["cost_known"] & answers["wait_known"] & answers["makespan_known"])
    assert left.any(), "one joint state should be too few for some boards"
    assert_every((answers["alone"] + answers["slack"] <= known.sum_of_costs) | ~left, boards)
    assert_every((answers["makespan"] <= known.makespan) | ~left, boards)

    def costs_of(*agents: int) -> np.ndarray:
        return solve(boards.replace(starts=boards.starts[:, agents], goals=boards.goals[:, agents])).sum_of_costs

    apart = [costs_of(agent) for agent in range(4)]
    for agent in range(4):
        needed = costs_of(*(other for other in range(4) if other != agent)) - (answers["alone"] - apart[agent])
        assert_every((answers["others"][:, agent] <= needed) | ~left, boards)
    for place, two in enumerate(itertools.combinations(range(4), 2)):
        single = answers["alone"] - sum(apart[agent] for agent in range(4) if agent not in two)
        assert_every((answers["excess"][:, place] <= costs_of(*two) - single) | ~left, boards)


def test_distances_too_long_for_a_byte_leave_a_board_open():
    size = 23
    walls = {0: "." * size, 1: "H" * (size - 1) + ".", 2: "." * size, 3: "." + "H" * (size - 1)}
    rows = [walls[row % 4] if row < 19 else "H" * size for row in range(size)]
    board = batch_of([drawing(rows, [(0, 0), (0, 2), (0, 4)], [(18, 22), (18, 20), (18, 18)])])
    answers = search_batch(board).answers
    assert answers["solvable"][0]
    for name in ("cost_known", "wait_known", "makespan_known", "slack"):
        assert not answers[name][0], name


def test_a_matching_takes_no_agent_twice():
    for agents in range(2, 9):
        pairs = list(itertools.combinations(range(agents), 2))
        for row in list_matchings(agents):
            load = [
                sum(weight for pair, weight in zip(pairs, row, strict=True) if agent in pair) for agent in range(agents)
            ]
            assert max(load) <= 2, f"{agents} agents: {row}"


@pytest.mark.parametrize(("agents", "cells"), [(3, 9), (5, 100), (8, 256)])
def test_a_search_takes_the_memory_that_is_reckoned_with(agents, cells):
    record, table = make_workspace(agents, cells)
    pairs = agents * (agents - 1) // 2
    assert record.nbytes <= SEARCH_BYTES
    assert table.nbytes == 6 * pairs * cells**2
