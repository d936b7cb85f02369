"""Planners without a model, against the oracle."""

import pytest

from lakewright.core_jax.types import MOVES
from lakewright.experiments.boards.evaluation.answerers import PLANNERS
from tests.support.boards import search_oracle as oracle
from tests.support.boards.generated_rows import rows, shown

SOME = rows()[::4]


def played(row, plan):
    return oracle.play(row.grid, row.starts, row.goals, plan)


@pytest.mark.parametrize("name", PLANNERS)
def test_a_plan_has_known_moves_for_every_agent_and_stays_on_the_board(name):
    for row in SOME:
        plan = PLANNERS[name](row, 0)
        assert len(plan) == row.agents, shown(row)
        assert set("".join(plan)) <= set(MOVES), shown(row)
        broken = ("illegal_move",) if name == "offset" else ("illegal_move", "hole")
        assert played(row, plan).failure not in broken, shown(row) + str(plan)


def test_optimal_is_optimal():
    for row in SOME:
        assert played(row, PLANNERS["optimal"](row, 0)).sum_of_costs == row.sum_of_costs, shown(row)


def test_greedy_takes_shortest_paths_that_are_right_where_they_do_not_meet():
    right = 0
    for row in SOME:
        plan = PLANNERS["greedy"](row, 0)
        alone = [oracle.distance(row.grid, start, goal) for start, goal in zip(row.starts, row.goals, strict=True)]
        assert list(map(len, plan)) == alone, shown(row)
        found = played(row, plan)
        assert found.failure in ("none", "vertex_conflict", "swap_conflict"), shown(row)
        right += found.failure == "none"
        assert not (row.wait_required and found.failure == "none"), shown(row)
    assert 0 < right < len(SOME)


def test_prioritized_keeps_the_first_agent_on_a_shortest_path_and_others_out_of_its_way():
    right = waits = 0
    for row in SOME:
        plan = PLANNERS["prioritized"](row, 0)
        assert len(plan[0]) == oracle.distance(row.grid, row.starts[0], row.goals[0]), shown(row)
        found = played(row, plan)
        if plan[1]:
            assert found.failure == "none", shown(row) + str(plan)
            assert found.sum_of_costs >= row.sum_of_costs, shown(row)
            waits += "W" in plan[1]
        right += found.failure == "none"
    assert 0.5 * len(SOME) < right < len(SOME)
    assert waits, "waits are among its moves"


def test_prioritized_second_agents_are_as_early_as_the_first_lets_them():
    for row in SOME[:20]:
        first, second = PLANNERS["prioritized"](row, 0)
        for shorter in range(len(second)):
            cut = [first, second[:shorter]]
            assert played(row, cut).failure != "none", shown(row) + str(cut)


def test_the_offset_leads_to_the_goals_where_nothing_is_in_the_way():
    right = 0
    for row in SOME:
        plan = PLANNERS["offset"](row, 0)
        empty = ["." * row.size] * row.size
        for start, goal, moves in zip(row.starts, row.goals, plan, strict=True):
            alone = oracle.play(empty, [start], [goal], [moves])
            assert (alone.failure, alone.sum_of_costs) == ("none", oracle.distance(empty, start, goal)), shown(row)
        right += played(row, plan).failure == "none"
    assert 0 < right < len(SOME)


def test_random_walks_depend_on_seed_and_board_alone():
    one, other = ([PLANNERS["random"](row, seed) for row in SOME] for seed in (0, 1))
    assert one == [PLANNERS["random"](row, 0) for row in SOME]
    assert one != other
