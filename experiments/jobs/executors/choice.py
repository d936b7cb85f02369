"""The executor that the options of a command name, opened once it is known what each of its tasks takes.

Without an option a command uses its other cores once it takes long, and a GPU.
"""

import contextlib
import dataclasses
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import cores
from lakewright.experiments.jobs.executors.executor import SERIAL, Executor, Task, count_at_once

if TYPE_CHECKING:
    from lakewright.experiments.jobs.executors.local_processes import Local

EXECUTORS = ("local", "ray")
MANY_CORES = 4  # of which one process uses at most three or so: threads of XLA stand in each other's way
ALONE = 3.0  # seconds of work after which processes are started, which takes them two or three
AT_ONCE = 4  # tasks on a GPU: while one is computed, others are copied and written
A = TypeVar("A")
R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class ExecutorChoice:
    """Where tasks run.

    name: `local` or `ray`. workers: processes of this machine, without it this process, or all of the machine for tasks
    that spread; of a Ray cluster the tasks at a time, without it as many as it has room for.
    """

    name: str = "local"
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers is {self.workers}; give at least 1")

    @contextlib.contextmanager
    def open(self, task: Task, folder: Path | None = None) -> Iterator[Executor]:
        """The executor, which ends with the block.

        task: what each task needs. folder: where tasks write, if they do. Raises InputError for an unknown name.
        """
        if self.name == "ray":
            from lakewright.experiments.jobs.executors.ray_cluster import Ray

            # Ray prints what happens to its nodes on standard output, which is for results.
            with contextlib.redirect_stdout(sys.stderr), Ray(self.workers, task, folder) as cluster:
                yield cluster
        elif self.workers:
            with _start_processes(self.workers, task) as processes:
                yield processes
        elif task.spreads and (cores() >= MANY_CORES or has_gpu()):
            with Threads() if has_gpu() else Growing(task) as machine:
                yield machine
        else:
            yield SERIAL


HERE = ExecutorChoice()


def has_gpu() -> bool:
    """Return True if JAX computes on GPUs; without its plug-ins it is not even started."""
    if not importlib.util.find_spec("jax_plugins"):
        return False
    from lakewright.core_jax.support import on_gpu

    return on_gpu()


def _start_processes(workers: int | None, task: Task) -> "Local":
    from lakewright.experiments.jobs.executors.local_processes import Local  # most commands need no processes

    return Local(workers, task)


class Growing:
    """This process at first, and once its tasks have taken a while, a process for each core instead.

    So a short command starts nothing, and a long one uses all cores. The results are the same.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._seconds = 0.0
        self._processes: Executor | None = None

    def __enter__(self) -> "Growing":
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown(cancel_futures=True)

    @property
    def at_once(self) -> int:
        """The number of tasks that this executor is given at a time."""
        return count_at_once(self._processes or SERIAL)

    @property
    def separate(self) -> bool:
        """Whether the next task is for another process."""
        return self._processes is not None or self._seconds > ALONE

    def submit(self, function: Callable[[A], R], item: A, /) -> Future[R]:
        """See `Executor.submit`."""
        if self._processes is None and self.separate:
            self._processes = _start_processes(None, self._task)
        if self._processes:
            return self._processes.submit(function, item)
        begun = time.monotonic()
        done = SERIAL.submit(function, item)
        self._seconds += time.monotonic() - begun
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor.shutdown`."""
        if self._processes:
            self._processes.shutdown(wait, cancel_futures=cancel_futures)


class Threads(ThreadPoolExecutor):
    """Threads of this process that share its GPU."""

    at_once = 2 * AT_ONCE

    def __init__(self) -> None:
        super().__init__(AT_ONCE)
