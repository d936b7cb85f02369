"""Blocks of work are dealt to the devices in turn, and answers come in order."""

import contextlib
import threading

import jax
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generator
from lakewright.core_jax.solver import solver
from lakewright.core_jax.support import cores, on_all_cores, on_gpu, parallel
from tests.support.boards.sample_boards import mixed_boards

DEVICES = ("first", "second")


class Gpu:
    """What is asked of a device."""

    platform = "gpu"


@pytest.mark.parametrize("workers", [1, 2])
def test_blocks_are_dealt_to_the_devices_in_turn(monkeypatch, workers):
    here = threading.local()

    @contextlib.contextmanager
    def default_device(device):
        here.device = device
        yield
        del here.device

    monkeypatch.setattr(parallel.jax, "local_devices", lambda: DEVICES)
    monkeypatch.setattr(parallel.jax, "default_device", default_device)
    monkeypatch.setattr(parallel, "workers", lambda: workers)
    found = on_all_cores(lambda item: (item, here.device), "abcd")
    assert found == [("a", "first"), ("b", "second"), ("c", "first"), ("d", "second")]


@pytest.fixture
def beside_a_gpu(monkeypatch):
    """JAX computes on a GPU, and has the processor beside it."""
    own = jax.local_devices()
    monkeypatch.setattr(parallel.jax, "local_devices", lambda backend=None: own if backend == "cpu" else [Gpu()])


def test_on_the_host_all_cores_work_beside_a_gpu(beside_a_gpu, monkeypatch):
    monkeypatch.setenv("NPROC", "5")
    assert (on_gpu(), parallel.workers()) == (True, parallel.THREADS_PER_DEVICE)
    with parallel.on_host():
        assert (on_gpu(), parallel.workers()) == (False, cores())
        (device,) = set(on_all_cores(lambda _: jax.config.values["jax_default_device"], "abcdef"))
    assert device.platform == "cpu"
    assert on_gpu()


def test_without_a_platform_for_the_processor_the_cores_still_search(monkeypatch):
    def local_devices(backend=None):
        if backend == "cpu":
            raise RuntimeError("Unknown backend cpu")
        return jax.devices()

    monkeypatch.setattr(parallel.jax, "local_devices", local_devices)
    monkeypatch.setenv("NPROC", "5")
    with parallel.on_host():
        assert parallel.workers() == 5


def test_teams_are_drawn_and_searched_for_by_all_cores_beside_a_gpu(beside_a_gpu, monkeypatch):
    monkeypatch.setenv("NPROC", "7")
    seen = []

    def look(*_):
        seen.append((parallel.workers(), parallel.on_gpu()))

    monkeypatch.setattr(solver, "_solve_by_stages", look)
    monkeypatch.setattr(generator, "_draw_boards", look)
    solver.solve_with_stages(mixed_boards(0, 4, 3, 3))
    generator.generate(EnvConfig.single(4, 3, hole_ratio=0.1, wait_ratio=0.5), 1, 8)
    assert seen == [(7, False), (7, False)]
