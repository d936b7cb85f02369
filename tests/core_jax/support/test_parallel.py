"""Blocks of work are dealt to the devices in turn, and answers come in order."""

import contextlib
import threading

import pytest

from lakewright.core_jax.support import on_all_cores, parallel

DEVICES = ("first", "second")


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
