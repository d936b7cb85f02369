"""Phases: their seconds are told to whoever collects them, and what is computed is the same."""

import time
from functools import partial

import jax
import numpy as np
import pytest

from core_jax.solver import solve
from core_jax.solver.teams import hard_boards
from core_jax.support import REST, in_phase, on_all_cores, parallel, seconds_by_phase
from tests.support.boards import mixed_boards

NAP = 0.1


def nap(_: object = None) -> None:
    time.sleep(NAP)


@pytest.fixture
def two_workers(monkeypatch):
    monkeypatch.setattr(parallel, "workers", lambda: 2)


@pytest.mark.parametrize("agents", [2, 3])
def test_collecting_changes_no_label(agents, monkeypatch):
    monkeypatch.setattr(hard_boards, "PATIENCE", 0)  # so that every phase comes about
    boards = mixed_boards(3, 96, 4, agents)
    found = []
    seconds = seconds_by_phase(lambda: found.append(solve(boards, makespan_plans=True)))
    assert {"distances", "certificates", REST} < set(seconds)
    assert ("plans" in seconds) == (agents == 2)
    for once, again in zip(*map(jax.tree.leaves, (found[0], solve(boards, makespan_plans=True))), strict=True):
        assert np.array_equal(once, again)


def test_a_phase_within_another_counts_once():
    def both():
        in_phase("inner", nap)
        nap()

    seconds = seconds_by_phase(lambda: (in_phase("outer", both), nap()))
    assert set(seconds) == {"inner", "outer", REST}
    assert all(NAP <= each < 2 * NAP for each in seconds.values()), seconds


def test_phases_of_all_threads_add_up_and_waiting_for_them_counts_as_nothing(two_workers):
    seconds = seconds_by_phase(lambda: on_all_cores(partial(in_phase, "nap", nap), range(4)))
    assert seconds["nap"] >= 4 * NAP
    assert seconds[REST] < 2 * NAP, "the caller's waiting is counted"


def test_after_an_error_nobody_collects():
    with pytest.raises(ZeroDivisionError):
        seconds_by_phase(lambda: in_phase("wrong", lambda: 1 / 0))
    assert in_phase("quiet", lambda: 7) == 7
    assert set(seconds_by_phase(lambda: None)) == {REST}
