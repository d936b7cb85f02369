"""The heartbeat of the process that works on a folder, as a file that other machines can read.

DIR/.driver.json names the process and is touched again and again; it is removed at the end. A lock says more, but is
seen only on the machine that holds it. Ages are by the clock of the disk because machines may differ in theirs.
"""

import contextlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import LOCKS, is_locked, read_config, write_json

FILE = ".driver.json"
INTERVAL = 20.0  # seconds between two signs
ALIVE = 120.0  # seconds after the last sign in which a process counts as alive


class Driver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """.driver.json: the process that works on a folder."""

    host: str
    process: int


class Sign(NamedTuple):
    """The last sign of life of a driver. age: seconds since then. alive: whether it counts as at work."""

    host: str
    age: float
    alive: bool


@contextlib.contextmanager
def show_life(folder: Path) -> Iterator[None]:
    """Gives signs of life in `folder` during the block. A disk that does not take them disturbs nothing else."""
    path, over = folder / FILE, threading.Event()
    with contextlib.suppress(OSError):
        write_json(path, Driver(socket.gethostname(), os.getpid()))
    threading.Thread(target=_touch_again, args=(path, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        with contextlib.suppress(OSError):
            path.unlink()


def _touch_again(path: Path, over: threading.Event) -> None:
    while not over.wait(INTERVAL):
        with contextlib.suppress(OSError):
            os.utime(path)  # the time is that of the disk


def find_sign(folder: Path) -> Sign | None:
    """The last sign of life of the driver of a folder; None if no driver was started, or it has ended."""
    path = folder / FILE
    try:
        driver, age = read_config(path, Driver), read_clock(folder) - path.stat().st_mtime
    except (InputError, OSError):
        return None
    if driver.host == socket.gethostname() and LOCKS.exists():  # it was killed where it holds no lock
        return Sign(driver.host, age, is_locked(folder))
    return Sign(driver.host, age, age < ALIVE)


def read_clock(folder: Path) -> float:
    """The time of the disk that holds a folder, in seconds since 1970; ours if nothing can be written there."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:  # which has no name on a disk that allows it
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()
