"""Threads follow the cores that others leave free."""

import pytest
import torch

from lakewright.experiments.loop.training import policy_models as threads
from lakewright.experiments.loop.training.policy_models import FreeCores, free_cores


@pytest.mark.parametrize(
    ("cores", "others", "expected"), [(2, 0.1, 2), (2, 1.0, 1), (2, 5.0, 1), (8, 2.4, 6), (4, -0.2, 4)]
)
def test_whole_cores_are_left_free_and_never_fewer_than_one(cores, others, expected):
    assert free_cores(cores, others) == expected


def test_a_busy_neighbour_leaves_one_thread(monkeypatch):
    chosen = []
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    measured = iter([(0.0, 0.0), (1.0, 0.9), (4.0, 4.1), (8.0, 4.2)])
    monkeypatch.setattr(FreeCores, "_measure_use", lambda self: next(measured))
    cores = FreeCores()
    for _ in range(3):
        cores.adapt()
    assert chosen == [1, 2], (
        "the second call comes too soon, the third finds a busy neighbour, the fourth a quiet machine"
    )
