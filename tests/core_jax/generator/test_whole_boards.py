"""Boards of one agent and of teams: whole boards are drawn, solved and sorted into their strata."""

import ast
import functools
from collections import Counter

import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.generator import attempts, generate
from lakewright.core_jax.types import Board, Certificate, Labels, Status
from tests.support.boards import search_oracle as oracle
from tests.support.boards.generated_rows import boards_by_index
from tests.support.boards.sample_boards import as_lists, assert_every, each


def solved_slowly(boards: Board, wanted: np.ndarray | None = None) -> Labels:
    """The oracle's labels, without plans; a board is undecided here where the first agent starts in the corner."""
    found = [slow_optima(str(as_lists(board))) for board in each(boards)]
    undecided = (np.asarray(boards.starts)[:, 0] == 0).all(axis=1)
    makespan, cost, wait = (np.where(undecided, -1, column) for column in np.array(found).T)
    status = np.select([undecided, cost < 0], [Status.UNDECIDED, Status.UNSOLVABLE], Status.SOLVABLE)
    moves = np.full((len(found), boards.starts.shape[1], 1), -1, np.int8)
    return Labels(status, np.full_like(status, Certificate.SEARCH), makespan, cost, wait > 0, moves)


@functools.cache
def slow_optima(board: str) -> tuple[int, int, bool]:
    rows, starts, goals = ast.literal_eval(board)
    return oracle.optima(rows, starts, goals)


@pytest.mark.parametrize(("agents", "wait_ratio"), [(1, 0.0), (3, 0.25)])
def test_boards_for_other_numbers_of_agents_have_their_stratum_and_undecided_ones_are_left_out(
    monkeypatch, agents, wait_ratio
):
    monkeypatch.setattr(attempts, "BLOCK", 32)
    monkeypatch.setattr(attempts, "prepare_solver", lambda size, agents: None)
    monkeypatch.setattr(attempts, "solve", solved_slowly)
    config = EnvConfig.single(3, agents, 0.5, wait_ratio)
    made = generate(config, 2, 24)[3]
    assert made.boards.starts.shape == (24, agents, 2)
    assert made.labels.wait_required.sum() == 24 * wait_ratio
    again = solved_slowly(made.boards)
    assert_every(made.labels.solvable & again.solvable, made.boards)
    assert_every(again.wait_required == made.labels.wait_required, made.boards)
    assert_every(made.boards.holes.sum(axis=(1, 2)) == holes_of(3, agents, 0.5), made.boards)
    parts = [generate(config, 2, 5, first=begin) for begin in range(0, 20, 5)]
    assert boards_by_index(*parts).items() <= boards_by_index({3: made}).items()
    for one in made.acceptance:
        assert one.drawn == one.solvable + one.unsolvable + one.undecided
        assert (
            one.met
            == (one.waiting if one.wait else one.solvable - one.waiting)
            == Counter(made.labels.wait_required.tolist())[one.wait]
        )
    assert sum(one.undecided for one in made.acceptance) > 0
