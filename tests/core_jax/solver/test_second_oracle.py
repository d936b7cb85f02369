"""A solver by other people, w9-pathfinding's A* over joint states, finds the same optima on random boards.

It is built from source by the extra `bench`, which needs a C++ compiler; without it these tests are left out, and the
exhaustive oracle of tests/oracle.py stands alone.
"""

import numpy as np
import pytest

from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import Status
from tests.campaigns.rates.peers import PlainBoard, w9_joint_astar
from tests.support.boards.sample_boards import assert_every, each, mixed_boards
from tests.support.deep import keep_quick

pytest.importorskip("w9_pathfinding", reason="the second oracle comes with `pip install lakewright[bench]`")

SMALL = ((2, 4, 400), (2, 8, 400), (3, 5, 200), (4, 4, 100), (5, 6, 50))  # agents, size, boards
LARGE = [pytest.param(agents, size, 1000, marks=pytest.mark.deep) for agents, size, _ in SMALL]


@pytest.mark.parametrize(("agents", "size", "count"), [*keep_quick(SMALL, SMALL[2:3]), *LARGE])
def test_solvability_and_sum_of_costs_are_those_of_another_solver(agents, size, count):
    boards = mixed_boards(7, count, size, agents)
    labels = solve(boards)
    expected = [w9_joint_astar(plain) for plain in map(plain_board, each(boards))]
    found = [int(cost) for cost in labels.sum_of_costs]
    holds = [
        theirs is None or undecided or theirs == ours
        for theirs, undecided, ours in zip(expected, labels.status == Status.UNDECIDED, found, strict=True)
    ]
    assert_every(np.array(holds), boards, found=np.array(found), expected=np.array(expected, float))
    in_time = sum(theirs is not None for theirs in expected)
    assert in_time > count * 0.9, f"the oracle had time for {in_time} of {count} boards only"


def plain_board(board) -> PlainBoard:
    cells = ([tuple(cell) for cell in np.asarray(ends).tolist()] for ends in (board.starts, board.goals))
    return PlainBoard(np.asarray(board.holes).tolist(), *cells)
