"""Certificates for any number of agents, plans of optimal makespan, and full tables of joint states."""

import functools

import jax
import numpy as np
import pytest

from lakewright.core_jax.lake import cell_count, pack_cells, verify
from lakewright.core_jax.solver import flood_boards, solve, solve_by_flood
from lakewright.core_jax.solver.single_agent.certificate import Certified, certify_boards
from lakewright.core_jax.solver.single_agent.distances import NO_PATH, measure_distances
from lakewright.core_jax.solver.two_agents.joint_floods import flood_costs, flood_makespans
from lakewright.core_jax.types import WAIT, Board, Certificate, Failure, Status
from tests.support.boards import search_oracle as oracle
from tests.support.boards.sample_boards import (
    as_lists,
    assert_every,
    assert_same_optima,
    batch,
    drawing,
    each,
    in_numpy,
    mixed_boards,
    optima,
    picture,
)
from tests.support.deep import keep_quick

pack, flood = in_numpy(pack_cells), in_numpy(flood_costs, static=0)
flood_times = in_numpy(flood_makespans, static=0)


@functools.cache
def certified(agents: int, size: int = 5, count: int = 300) -> tuple[Board, Certified, np.ndarray]:
    boards = mixed_boards(agents, count, size, agents=agents)
    distance = measure_distances(boards)
    return boards, certify_boards(32, boards, distance), np.asarray(distance)


@pytest.mark.parametrize("agents", keep_quick([1, 3, 5], [3]))
def test_a_certified_plan_replays_without_a_wait_at_the_lower_bounds(agents):
    boards, found, distance = certified(agents)
    labels = found.labels
    away = np.take_along_axis(
        distance.reshape(*distance.shape[:2], -1),
        np.asarray(boards.starts[..., :1] * boards.holes.shape[-1] + boards.starts[..., 1:]),
        axis=2,
    )[..., 0]
    played = verify(boards, labels.moves)
    proven = np.asarray(found.proven & (labels.status == Status.SOLVABLE))
    at_bounds = (played.makespan == away.max(axis=1)) & (played.sum_of_costs == away.sum(axis=1))
    assert proven.any(), "some boards should be certified"
    assert_every(~proven | ((played.failure == Failure.NONE) & at_bounds), boards, moves=labels.moves)
    assert_every((labels.makespan == played.makespan) | ~proven, boards, makespan=labels.makespan)
    assert_every((labels.sum_of_costs == played.sum_of_costs) | ~proven, boards, cost=labels.sum_of_costs)
    assert_every(~(np.asarray(labels.moves) == WAIT).any(axis=(1, 2)), boards, moves=labels.moves)


@pytest.mark.parametrize("agents", keep_quick([1, 3, 5], [3]))
def test_a_board_is_proven_unsolvable_where_an_agent_has_no_way(agents):
    boards, found, _ = certified(agents)
    stuck = [
        any(oracle.distance(rows, start, goal) < 0 for start, goal in zip(starts, goals, strict=True))
        for rows, starts, goals in map(as_lists, each(boards))
    ]
    unsolvable = np.asarray(found.labels.status == Status.UNSOLVABLE)
    assert_every(unsolvable == np.array(stuck), boards)
    assert_every(found.proven | ~unsolvable, boards)
    assert (np.asarray(found.labels.certificate) == Certificate.BOUND).all()


def test_the_distances_of_many_agents_are_those_of_the_oracle():
    boards, _, distance = certified(3)
    for board, found in list(zip(each(boards), distance, strict=True))[:20]:
        rows, _, goals = as_lists(board)
        for goal, of_agent in zip(goals, found, strict=True):
            for cell in np.ndindex(5, 5):
                steps = oracle.distance(rows, cell, goal) if rows[cell[0]][cell[1]] == "." else -1
                assert of_agent[cell] == (steps if steps >= 0 else NO_PATH), f"{cell} to {goal}" + picture(board)


@pytest.mark.parametrize("label", [solve, solve_by_flood])
def test_a_makespan_plan_replays_at_exactly_the_makespan(label):
    for size in (3, 5):
        boards = mixed_boards(size, 400, size)
        labels = label(boards, makespan_plans=True)
        played = verify(boards, labels.makespan_moves)
        valid = (played.failure == Failure.NONE) & (played.makespan == labels.makespan)
        assert_every(valid | ~labels.solvable, boards, moves=labels.makespan_moves, makespan=labels.makespan)
        assert_every((labels.makespan_moves == -1).all(axis=(1, 2)) | labels.solvable, boards)
        assert_same_optima(boards, optima(labels), optima(solve(boards)))


def number(digits: np.ndarray) -> int:
    return sum(int(digit & 1) << i for i, digit in enumerate(digits))


@pytest.mark.parametrize(
    "rows",
    [["...", ".@.", "..."], ["...", "@.@", "..."], ["....", ".@@.", "....", ".@.."], ["@.@@", "....", "@@@@", "...."]],
)
def test_a_full_table_holds_the_optima_of_all_joint_states(rows):
    size = len(rows)
    cells = [cell for cell in np.ndindex(size, size) if rows[cell[0]][cell[1]] == "."]
    goals = [cells[0], cells[len(cells) // 2]]
    free = np.array([[letter == "." for letter in row] for row in rows])
    padded = [row * (size + 1) + column for row, column in goals]
    word = pack(np.broadcast_to(free, (32, size, size)))
    ends = size, word[None], np.broadcast_to(np.array(padded)[:, None], (1, 2, 32))
    table, arrival = flood(*ends), flood_times(*ends)[0][0]
    cost, reached, wait = (np.asarray(field[0]) for field in (table.cost, table.reached, table.wait))
    assert bool(table.complete[0])
    for a in cells:
        for b in cells:
            x, y = (row * (size + 1) + column for row, column in (a, b))
            expected = oracle.optima(rows, [a, b], goals) if a != b else oracle.Optima(-1, -1, False)
            known = bool(reached[x, y] & 1)
            found = (
                (number(arrival[:, x, y]), number(cost[:, x, y]), bool(wait[x, y] & 1)) if known else (-1, -1, False)
            )
            assert found == expected, f"{a}, {b} to {goals}\n" + "\n".join(rows)


def test_a_full_table_needs_no_goal_to_be_free_of_the_other():
    count = cell_count(3)
    free = pack(np.ones((32, 3, 3), bool))
    floods = flood(3, free[None], np.tile([[0], [5]], (1, 1, 32)))
    table = jax.tree.map(lambda field: field[0], floods)
    assert table.reached.shape == (count, count)
    assert table.reached[0, 5] == 0xFFFFFFFF
    assert (table.cost[:, 0, 5] == 0).all()


@pytest.mark.parametrize("size", [5, pytest.param(16, marks=pytest.mark.deep)])
def test_two_who_meet_in_a_corridor_pass_at_its_siding(size):
    middle = (size - 1) // 2
    siding = ["@" * middle + "." + "@" * (size - middle - 1), "." * size]
    boards = batch([drawing(siding, [(1, 0), (1, size - 1)], [(1, size - 1), (1, 0)], size)])
    labels = solve(boards, makespan_plans=True)
    assert int(labels.status[0]) == Status.SOLVABLE
    assert_same_optima(boards, optima(labels), np.array([oracle.optima(*as_lists(board)) for board in each(boards)]))
    played = verify(boards, labels.makespan_moves)
    assert int(played.makespan[0]) == int(labels.makespan[0])


def test_one_program_serves_all_boards_of_a_size():
    solve(mixed_boards(2, 40, 3), makespan_plans=True)
    programs = flood_boards._cache_size(), measure_distances._cache_size(), certify_boards._cache_size()
    solve(mixed_boards(3, 700, 3), makespan_plans=True)
    assert (flood_boards._cache_size(), measure_distances._cache_size(), certify_boards._cache_size()) == programs
