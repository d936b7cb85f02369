"""Whether there is a plan at all, against exhaustive search over joint moves."""

import numpy as np
import pytest

from lakewright.core_jax.solver.teams.joint_states import find_whether_solvable, list_steps
from tests.support.boards import search_oracle as oracle
from tests.support.boards.sample_boards import as_lists, drawing, each, mixed_boards, picture, random_boards

STATES = 1 << 20


def answer(board, states=STATES):
    size = len(board.holes)
    starts, goals = (np.asarray(cells) @ [size, 1] for cells in (board.starts, board.goals))
    return find_whether_solvable(list_steps(np.asarray(board.holes)), starts, goals, states)


@pytest.mark.parametrize(
    ("agents", "size", "count"), [(2, 3, 200), (3, 3, 100), (4, 3, 16), pytest.param(4, 3, 60, marks=pytest.mark.deep)]
)
def test_reachability_agrees_with_joint_search(agents, size, count):
    boards = each(mixed_boards(agents, count, size, agents))
    if agents == 4:  # crowded: only there do agents rotate, and only there do four of them block each other
        boards = each(random_boards(4, count, size, np.arange(count) % 2, agents))
    answers = []
    for board in boards:
        answers.append(oracle.makespan(*as_lists(board)) != oracle.NO_PLAN)
        assert answer(board) is answers[-1], picture(board)
    assert agents == 4 or set(answers) == {True, False}, "the sample should hold both"


@pytest.mark.parametrize("turn", [1, 2])
def test_four_agents_rotate_on_a_full_square(turn):
    square = [(0, 0), (0, 1), (1, 1), (1, 0)]
    board = drawing(["..", ".."], square, square[turn:] + square[:turn])
    assert answer(board) is True, picture(board)


def test_two_of_four_agents_do_not_change_places_on_a_full_square():
    square = [(0, 0), (0, 1), (1, 1), (1, 0)]
    board = drawing(["..", ".."], square, [square[1], square[0], *square[2:]])
    assert answer(board) is False, picture(board)


def test_too_many_joint_states_are_left_open():
    board = each(random_boards(0, 1, 6, 0, agents=4))[0]
    assert answer(board, states=1000) is None, picture(board)
