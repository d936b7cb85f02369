"""The statistics of boards, against graphs of networkx and the labels."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.solver import solve
from lakewright.core_jax.statistics import COLUMNS
from lakewright.core_jax.statistics.board_features import SCHEMA, features, table
from lakewright.core_jax.types import PAD, Board, Labels, Status
from tests.support.boards import graph_oracle as hardness
from tests.support.boards.sample_boards import (
    as_lists,
    as_strings,
    assert_every,
    batch,
    drawing,
    each,
    mapped,
    mixed_boards,
    picture,
)

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=8)
OF_WAYS = tuple(hardness.ways(["..", ".."], [(0, 0)], [(1, 1)]))


def unlabelled(boards: Board) -> Labels:
    """What a solver says that has decided nothing."""
    count, agents = boards.starts.shape[:2]
    none, moves = np.full(count, -1), np.full((count, agents, 0), PAD, np.int8)
    return Labels(np.full(count, Status.UNDECIDED), np.zeros(count, int), none, none, np.zeros(count, bool), moves)


def measured(boards: Board) -> dict[str, np.ndarray]:
    return features(boards, unlabelled(boards))


@few
@given(seeds, st.sampled_from([(4, 2), (5, 3)]))
def test_counts_are_those_of_a_slow_search_in_graphs(seed, kind):
    boards = mixed_boards(seed, 64, *kind)
    found = measured(boards)
    for place, board in enumerate(each(boards)):
        grid, starts, goals = as_lists(board)
        expected = hardness.terrain(grid) | (hardness.ways(grid, starts, goals) or dict.fromkeys(OF_WAYS, -1))
        ours = {name: found[name][place] for name in expected}
        assert ours == pytest.approx(expected), picture(board)


@few
@given(seeds)
def test_every_articulation_point_is_a_bottleneck(seed):
    boards = mixed_boards(seed, 64, 4)
    graphs = [hardness.lake(as_lists(board)[0]) for board in each(boards)]
    fewest = np.array([len(list(nx.articulation_points(graph))) for graph in graphs])
    found = measured(boards)["bottlenecks"]
    assert_every(found >= fewest, boards, found=found, articulation_points=fewest)


@few
@given(seeds)
def test_gaps_plans_and_conflicts_agree_with_the_labels(seed):
    boards = mixed_boards(seed, 256, 4)
    labels = solve(boards)
    found = features(boards, labels)
    solvable = labels.solvable
    assert_every((found["status"] == Status.SOLVABLE) == solvable, boards)
    assert_every((found["makespan_gap"] >= 0) == solvable, boards, gap=found["makespan_gap"])
    costs = np.where(solvable, found["cost_bound"] + found["cost_gap"], -1)
    assert_every(costs == labels.sum_of_costs, boards, costs=costs)
    free_of_conflicts = (found["vertex_conflicts"] == 0) & (found["swap_conflicts"] == 0)
    assert_every(~free_of_conflicts | (found["cost_gap"] == 0), boards, gap=found["cost_gap"])
    # What shortest paths cannot avoid costs more than they do.
    assert_every((found["cardinal_conflicts"] <= 0) | (found["cost_gap"] != 0), boards, gap=found["cost_gap"])
    assert_every((found["mdd_overlap"] > 0) | (found["vertex_conflicts"] <= 0), boards)
    assert_every(~labels.wait_required | (found["cost_gap"] > 0), boards, gap=found["cost_gap"])
    for place, moves in enumerate(labels.moves):
        plan = as_strings(moves)
        assert found["plan_length"][place] == (max(map(len, plan)) if solvable[place] else -1), picture(
            each(boards)[place]
        )
        assert found["plan_waits"][place] == ("".join(plan).count("W") if solvable[place] else -1)


@few
@given(seeds, st.integers(0, 3), st.booleans())
def test_statistics_but_those_of_first_paths_ignore_turns_and_mirrors(seed, turns, mirror):
    boards = mixed_boards(seed, 64, 4)
    here, there = measured(boards), measured(mapped(boards, turns, mirror))
    first_paths = {"vertex_conflicts", "target_conflicts", "swap_conflicts", "path_overlap"}
    for name in set(COLUMNS) - first_paths:
        assert_every(here[name] == there[name], boards, **{name: here[name], "turned": there[name]})


def test_known_boards_have_known_conflicts():
    row = drawing(["...."], [(0, 0), (0, 3)], [(0, 3), (0, 0)])  # they swap in the middle
    passing = drawing(["...."], [(0, 0), (0, 2)], [(0, 3), (0, 1)])  # one has just come home, in the other's way
    crossing = drawing([".@..", "....", ".@..", "..@@"], [(1, 0), (0, 2)], [(1, 3), (2, 2)])
    apart = drawing([".@..", ".@..", ".@..", ".@.."], [(0, 0), (0, 2)], [(0, 3), (3, 2)])
    found = measured(batch([row, passing, crossing, apart]))
    assert found["swap_conflicts"].tolist() == [1, 0, 0, -1]
    assert found["vertex_conflicts"].tolist() == [0, 1, 0, -1]
    assert found["target_conflicts"].tolist() == [0, 1, 0, -1]
    assert found["cardinal_conflicts"].tolist() == [0, 1, 0, -1]
    assert found["cost_bound"].tolist() == [6, 4, 5, -1]
    assert found["manhattan"].tolist() == [6, 4, 5, 6]
    assert found["components"].tolist() == [1, 1, 1, 2]
    assert found["largest_component"].tolist() == [4, 4, 12, 8]
    assert found["density"] == pytest.approx([2 / 4, 2 / 4, 2 / 12, 2 / 12])


def test_each_board_is_measured_as_if_alone_whatever_the_batch():
    boards = mixed_boards(3, 1100, 4)  # more than a block
    whole, part = measured(boards), measured(Board(boards.holes[1050:], boards.starts[1050:], boards.goals[1050:]))
    for name in COLUMNS:
        assert (whole[name][1050:] == part[name]).all(), name


@pytest.mark.parametrize("columns", [("sum_of_costs", "status"), ("bottlenecks", "makespan", "cost_gap")])
def test_some_columns_are_as_in_all_of_them(columns):
    boards = mixed_boards(1, 64, 4)
    labels = solve(boards)
    whole, some = features(boards, labels), features(boards, labels, columns)
    assert tuple(some) == columns
    for name in columns:
        assert (some[name] == whole[name]).all(), name


def test_a_table_has_a_described_column_each_and_null_where_a_board_has_none():
    boards = mixed_boards(1, 64, 4)
    labels = solve(boards)
    rows = table(features(boards, labels))
    assert rows.schema == SCHEMA
    assert tuple(rows.column_names) == tuple(COLUMNS)
    assert all(field.metadata[b"about"] for field in rows.schema)
    unsolvable = int((~labels.solvable).sum())
    assert 0 < unsolvable < 64
    for name in ("makespan", "sum_of_costs", "wait_required", "plan_length", "cost_gap"):
        assert rows[name].null_count == unsolvable, name
    assert rows["free_cells"].null_count == rows["status"].null_count == 0


def test_only_the_columns_that_are_wanted_stand_in_a_table():
    found = measured(mixed_boards(1, 64, 4))
    rows = table({name: found[name] for name in ("wait_required", "cost_bound")})
    assert rows.column_names == ["wait_required", "cost_bound"]


def test_the_page_of_sweeps_and_the_fields_of_a_table_say_what_each_column_is():
    page = (Path(__file__).parents[3] / "docs" / "sweeps.md").read_text()
    for name, (_, about) in COLUMNS.items():
        assert f"\n| `{name}` | {about} |\n" in page
        assert SCHEMA.field(name).metadata[b"about"].decode() == about
