"""Phases: their seconds are reported to the collector, and results stay the same."""

import time
from functools import partial

import jax
import numpy as np
import pytest

from lakewright.core_jax.solver import solve
from lakewright.core_jax.solver.teams import hard_boards
from lakewright.core_jax.support import REST, in_phase, on_all_cores, parallel, profiling, seconds_by_phase
from tests.support.boards.sample_boards import mixed_boards

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


def test_a_phase_within_another_counts_once(monkeypatch):
    now = [0]
    monkeypatch.setattr(profiling.time, "perf_counter", lambda: now[0])

    def pass_time(seconds):
        now[0] += seconds

    def both():
        in_phase("inner", pass_time, 3)
        pass_time(5)

    seconds = seconds_by_phase(lambda: (in_phase("outer", both), pass_time(7)))
    assert seconds == {"inner": 3, "outer": 5, REST: 7}


def test_phases_of_all_threads_add_up_and_waiting_for_them_counts_as_nothing(two_workers):
    begun = time.perf_counter()
    seconds = seconds_by_phase(lambda: on_all_cores(partial(in_phase, "nap", nap), range(8)))
    passed = time.perf_counter() - begun
    assert seconds["nap"] >= 8 * NAP
    assert seconds[REST] < passed / 2, "the caller's waiting is counted"


def test_after_an_error_nothing_is_collected():
    with pytest.raises(ZeroDivisionError):
        seconds_by_phase(lambda: in_phase("wrong", lambda: 1 / 0))
    assert in_phase("quiet", lambda: 7) == 7
    assert set(seconds_by_phase(lambda: None)) == {REST}
