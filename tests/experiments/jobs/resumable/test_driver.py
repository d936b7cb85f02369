"""The sign of life of a driver: seen from other machines, by the clock of the disk, and gone when it ends."""

import os
import socket
import time

import pytest

from lakewright.core_jax.support import locked, write_json
from lakewright.experiments.jobs.resumable import driver
from lakewright.experiments.jobs.resumable.driver import FILE, Driver, find_sign, read_clock, show_life


def give_sign(folder, host: str, ago: float) -> None:
    """A sign of life of another process."""
    write_json(folder / FILE, Driver(host, 1))
    then = time.time() - ago
    os.utime(folder / FILE, (then, then))


def test_a_driver_on_another_machine_is_at_work_as_long_as_it_gives_signs(tmp_path):
    assert find_sign(tmp_path) is None
    give_sign(tmp_path, "far-away", 60)
    sign = find_sign(tmp_path)
    assert (sign.host, sign.alive) == ("far-away", True)
    assert sign.age == pytest.approx(60, abs=5)
    give_sign(tmp_path, "far-away", 600)
    assert not find_sign(tmp_path).alive


def test_of_a_driver_on_this_machine_the_lock_decides(tmp_path):
    give_sign(tmp_path, socket.gethostname(), 1)
    assert not find_sign(tmp_path).alive, "it was killed"
    with locked(tmp_path):
        assert find_sign(tmp_path).alive


def test_signs_are_given_until_the_work_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "INTERVAL", 0.05)
    with show_life(tmp_path):
        os.utime(tmp_path / FILE, (0, 0))
        until = time.monotonic() + 20
        while (tmp_path / FILE).stat().st_mtime == 0:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert not list(tmp_path.iterdir())


def test_the_age_of_a_sign_is_by_the_clock_of_the_disk(tmp_path, monkeypatch):
    assert read_clock(tmp_path) == pytest.approx(time.time(), abs=5)
    assert not list(tmp_path.iterdir())
    give_sign(tmp_path, "far-away", 60)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert find_sign(tmp_path).age == pytest.approx(60, abs=5)


def test_a_disk_that_takes_no_signs_disturbs_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(driver, "write_json", refuse)
    with show_life(tmp_path):
        assert not list(tmp_path.iterdir())
