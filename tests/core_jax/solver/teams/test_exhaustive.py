"""Optima from all joint states: against exhaustive search, and on boards whose plans are long."""

import functools

import numpy as np
import pytest

from lakewright.core_jax.solver import SolverStage, solve_with_stages
from lakewright.core_jax.solver.teams import hard_boards, team_solver
from lakewright.core_jax.solver.teams.formulas.optimal_plans import FormulaAnswer
from lakewright.core_jax.solver.teams.host_search import host_search
from lakewright.core_jax.solver.teams.joint_states import Flood, list_steps
from lakewright.core_jax.types import Board
from tests.support.boards import search_oracle as oracle
from tests.support.boards.sample_boards import (
    as_lists,
    as_strings,
    assert_same_optima,
    batch,
    drawing,
    each,
    mixed_boards,
    optima,
    picture,
    searched,
)
from tests.support.deep import keep_quick


def flooded(board: Board) -> Flood:
    size = len(board.holes)
    return Flood(list_steps(np.asarray(board.holes)), *(np.asarray(cells) @ [size, 1] for cells in as_lists(board)[1:]))


def assert_reaches(board: Board, plan: np.ndarray, makespan: int | None = None, cost: int | None = None) -> None:
    played = oracle.play(*as_lists(board), as_strings(plan))
    assert played.failure == "none", picture(board)
    assert makespan in (None, played.makespan), picture(board)
    assert cost in (None, played.sum_of_costs), picture(board)


@pytest.mark.parametrize(("agents", "count"), keep_quick([(1, 20), (2, 60), (3, 40), (4, 10)], [(2, 60), (3, 40)]))
def test_optima_and_plans_agree_with_exhaustive_search(agents, count):
    waits = []
    for board in each(mixed_boards(agents, count, 3, agents)):
        expected, flood = oracle.optima(*as_lists(board)), flooded(board)
        if expected.makespan == oracle.NO_PLAN:
            continue
        (fastest, makespan, _), (plan, cost, wait) = flood.makespan(), flood.sum_of_costs()
        assert (makespan, cost, wait) == expected, picture(board)
        assert_reaches(board, fastest, makespan=makespan)
        assert_reaches(board, plan, cost=cost)
        assert wait or "W" not in "".join(as_strings(plan)), picture(board)
        waits.append(wait)
    assert agents == 1 or set(waits) == {True, False}, "the sample should hold both"


def test_joint_moves_are_counted_before_any_is_made():
    assert flooded(drawing(["..", ".@"], [(0, 0), (0, 1)], [(0, 1), (0, 0)])).joint_moves == 7**2


SNAKE = ["H.HHHHHH", "........", "HHHHHHH.", "........", ".HHHHHHH", "........", "HHHHHH.H", "HHHHHHHH"]


def test_agents_that_have_room_to_change_places_only_at_the_ends_of_a_corridor_go_to_and_fro():
    board = drawing(SNAKE, [(1, 2), (1, 3), (1, 4)], [(5, 5), (5, 4), (5, 3)])  # two at a time: three times through
    (fastest, makespan, _), (plan, cost, wait) = flooded(board).makespan(), flooded(board).sum_of_costs()
    assert (makespan, cost, wait) == (72, 173, True)
    assert_reaches(board, fastest, makespan=makespan)
    assert_reaches(board, plan, cost=cost)


def test_boards_that_the_satisfiability_solver_gives_up_are_flooded(monkeypatch):
    monkeypatch.setattr(team_solver, "search_batch", functools.partial(host_search.search_batch, nodes=0))
    monkeypatch.setattr(hard_boards, "PATIENCE", 0)
    monkeypatch.setattr(hard_boards, "WINDOW", 0)
    monkeypatch.setattr(hard_boards, "find_fastest_plan", nothing_found)
    monkeypatch.setattr(hard_boards, "find_cheapest_plan", nothing_found)
    boards = batch([drawing(*board) for board in DETOURS])
    found = solve_with_stages(boards, makespan_plans=True)
    labels = found.labels
    assert set(found.stage) == {SolverStage.JOINT_STATES}
    assert_same_optima(boards, optima(labels), searched(boards))
    for row, board in enumerate(each(boards)):
        assert_reaches(board, labels.moves[row], cost=labels.sum_of_costs[row])
        assert_reaches(board, labels.makespan_moves[row], makespan=labels.makespan[row])


def nothing_found(puzzle, lower, conflicts, most=0):
    """A formula that is given up."""
    return FormulaAnswer(None, lower)


DETOURS = [
    (["H...", "HHH.", "..H.", "...."], [(0, 3), (0, 1), (2, 3)], [(3, 0), (2, 1), (0, 2)]),
    ([".H..", ".HH.", "....", "HH.H"], [(0, 2), (1, 3), (0, 0)], [(1, 0), (2, 3), (0, 3)]),
    (["H.H.", "..H.", "..H.", "H..."], [(1, 3), (2, 0), (1, 0)], [(2, 3), (0, 3), (1, 1)]),
    (["HH..", "HH..", ".HH.", "...."], [(2, 3), (1, 2), (2, 0)], [(3, 0), (0, 3), (0, 2)]),
]
