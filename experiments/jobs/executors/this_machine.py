"""Executors that use this machine without being asked: its other cores once a command takes long, and its GPU."""

import importlib.util
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from lakewright.experiments.jobs.executors.executor import SERIAL, Task
from lakewright.experiments.jobs.executors.local_processes import Local

MANY_CORES = 4  # of which one process uses at most three or so: threads of XLA stand in each other's way
ALONE = 3.0  # seconds of work after which processes are started, which takes them two or three
AT_ONCE = 4  # tasks on a GPU: while one is computed, others are copied and written
A = TypeVar("A")
R = TypeVar("R")


def has_gpu() -> bool:
    """Return True if JAX computes on GPUs; without its plug-ins it is not even started."""
    if not importlib.util.find_spec("jax_plugins"):
        return False
    from lakewright.core_jax.support import on_gpu

    return on_gpu()


class Growing:
    """This process at first, and once its tasks have taken a while, a process for each core instead.

    So a short command starts nothing, and a long one uses all cores. The results are the same.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._seconds = 0.0
        self._processes: Local | None = None

    def __enter__(self) -> "Growing":
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown(cancel_futures=True)

    @property
    def at_once(self) -> int:
        """The number of tasks that this executor is given at a time."""
        return self._processes.at_once if self._processes else SERIAL.at_once

    def submit(self, function: Callable[[A], R], item: A, /) -> Future[R]:
        """As `Executor.submit`."""
        if self._processes is None and self._seconds > ALONE:
            self._processes = Local(None, self._task)
        if self._processes:
            return self._processes.submit(function, item)
        begun = time.monotonic()
        done = SERIAL.submit(function, item)
        self._seconds += time.monotonic() - begun
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `Executor.shutdown`."""
        if self._processes:
            self._processes.shutdown(wait, cancel_futures=cancel_futures)


class Threads(ThreadPoolExecutor):
    """Threads of this process that share its GPU."""

    at_once = 2 * AT_ONCE

    def __init__(self) -> None:
        super().__init__(AT_ONCE)
