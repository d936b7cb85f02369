"""The labels of related boards must agree, and a false label is found."""

import dataclasses

import numpy as np
import pytest

from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import Status
from tests.campaigns.labels.related_boards import find_contradictions
from tests.support.boards.sample_boards import mixed_boards


@pytest.fixture(scope="module", params=[2, 3])
def boards(request):
    return mixed_boards(5, 64, 4, request.param)


def test_true_labels_contradict_those_of_no_related_board(boards):
    labels = solve(boards)
    assert len(set(np.asarray(labels.status).tolist())) > 1, "boards with a plan and without one are among them"
    for seed in range(4):
        wrong = find_contradictions(boards, labels, np.random.default_rng(seed))
        assert not wrong.any(), f"boards {np.flatnonzero(wrong)}"


@pytest.mark.parametrize("name", ["sum_of_costs", "makespan", "wait_required"])
def test_a_false_optimum_or_wait_is_contradicted_by_the_board_turned(boards, name):
    labels = solve(boards)
    true = np.asarray(getattr(labels, name))
    false = dataclasses.replace(labels, **{name: ~true if true.dtype == bool else true + 1})
    solvable = np.asarray(labels.status) == Status.SOLVABLE
    assert (find_contradictions(boards, false, np.random.default_rng(0)) == solvable).all()


def test_a_board_without_a_plan_that_is_said_to_have_one_is_contradicted(boards):
    labels = solve(boards)
    lies = dataclasses.replace(labels, status=np.full(len(boards.holes), Status.SOLVABLE))
    unsolvable = np.asarray(labels.status) == Status.UNSOLVABLE
    assert (find_contradictions(boards, lies, np.random.default_rng(0)) == unsolvable).all()
