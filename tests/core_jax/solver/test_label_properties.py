"""What the solver's labels must obey on every board."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import Board
from tests.support.boards import search_oracle as oracle
from tests.support.boards.sample_boards import (
    as_lists,
    assert_every,
    assert_same_optima,
    each,
    infinite_where_unsolvable,
    mapped,
    mixed_boards,
    optima,
    picture,
)

seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from([(2, 3), (2, 5), (3, 4)])  # agents, size; from three agents on a search decides
sizes = st.sampled_from([3, 5])
few = settings(max_examples=10)


def boards_of(seed: int, kind: tuple[int, int]) -> Board:
    """So many that they take seconds at most."""
    agents, size = kind
    return mixed_boards(seed, 256 if agents == 2 else 64, size, agents)


@few
@given(seeds, kinds)
def test_labels_ignore_turns_mirrors_and_the_order_of_agents(seed, kind):
    boards = boards_of(seed, kind)
    expected = optima(solve(boards))
    for turns, mirror in np.ndindex(4, 2):
        image = mapped(boards, turns, mirror)
        assert_same_optima(boards, optima(solve(image)), expected)
    swapped = Board(boards.holes, boards.starts[:, ::-1], boards.goals[:, ::-1])
    assert_same_optima(boards, optima(solve(swapped)), expected)


@few
@given(seeds, kinds)
def test_makespan_is_the_same_backward_in_time(seed, kind):
    boards = boards_of(seed, kind)
    forward = solve(boards).makespan
    backward = solve(Board(boards.holes, boards.goals, boards.starts)).makespan
    assert_every(forward == backward, boards, forward=forward, backward=backward)


@few
@given(seeds, kinds)
def test_freeing_a_hole_never_raises_an_optimum(seed, kind):
    boards = boards_of(seed, kind)
    lottery = boards.holes * np.random.default_rng(seed).random(boards.holes.shape)
    freed = boards.holes & (lottery < lottery.max(axis=(1, 2), keepdims=True))
    before = infinite_where_unsolvable(solve(boards))
    after = infinite_where_unsolvable(solve(boards.replace(holes=freed)))
    for worst, best in zip(before, after, strict=True):
        assert_every(best <= worst, boards, before=worst, after=best, freed=freed)


@few
@given(seeds, kinds)
def test_sum_of_costs_lies_between_single_distances_and_the_makespan_for_every_agent(seed, kind):
    boards = boards_of(seed, kind)
    labels = solve(boards)
    for board, answer in zip(each(boards), optima(labels), strict=True):
        grid, starts, goals = as_lists(board)
        single = [oracle.distance(grid, start, goal) for start, goal in zip(starts, goals, strict=True)]
        makespan, cost, _ = answer
        assert cost < 0 or (sum(single) <= cost <= kind[0] * makespan and max(single) <= makespan), picture(board)


@few
@given(seeds, sizes)
def test_two_agents_are_unsolvable_only_if_separated_or_out_of_order_on_a_path(seed, size):
    boards = mixed_boards(seed, 256, size)
    expected = np.array([oracle.solvable_in_closed_form(*as_lists(board)) for board in each(boards)])
    assert_every(solve(boards).solvable == expected, boards, closed_form=expected)
