"""Processes of this machine that work side by side, and end with the one that started them.

One that dies costs only its task, which is repeated by a new process.
"""

import contextlib
import importlib.util
import multiprocessing
import os
import queue
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import cores, count_cores, end_with_starter
from lakewright.experiments.jobs.executors.executor import ATTEMPTS, DIED, Task, WorkerDiedError

A = TypeVar("A")
R = TypeVar("R")


class Local:
    """Spawned processes, by default as many as there are cores; they are started when they are needed.

    Raises InputError if the machine has too few GPUs for these tasks.
    """

    separate = True

    def __init__(self, workers: int | None = None, task: Task = Task()) -> None:  # noqa: B008
        self.workers = workers or max(1, cores() // (task.cores or 1))
        self.at_once = 2 * self.workers  # so that no worker is idle between two of them
        environments = _share_machine(task, self.workers)
        self._processes = [_Worker(task.prepare, environment) for environment in environments]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for process in self._processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(self.workers)
        self._end = weakref.finalize(self, _end_processes, self._threads, self._processes)

    def __enter__(self) -> "Local":
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown(cancel_futures=True)

    def submit(self, function: Callable[[A], R], item: A, /) -> Future[R]:
        """See `Executor.submit`."""
        return self._threads.submit(_call_idle, self._idle, function, item)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor.shutdown`; with `cancel_futures` what is running is killed too."""
        if not cancel_futures:
            self._threads.shutdown(wait)
        if wait or cancel_futures:
            self._end()


def _call_idle(idle: "queue.SimpleQueue[_Worker]", function: Callable[[A], R], item: A) -> R:
    worker = idle.get()
    try:
        return worker.call(function, item)
    finally:
        idle.put(worker)


def _end_processes(threads: ThreadPoolExecutor, processes: Sequence["_Worker"]) -> None:
    threads.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.stop()
    threads.shutdown()
    for process in processes:
        process.join()


def _share_machine(task: Task, workers: int) -> list[dict[str, str]]:
    """The environment of each worker: its threads, unless this process's says so, and its GPUs."""
    own = task.cores or max(1, count_cores() // workers)
    threads = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": str(own)}
    if task.gpus is None:
        return [threads] * workers
    devices = _list_gpus()
    if task.gpus * workers > len(devices):
        raise InputError(
            f"{workers} {task.name}s at a time need {task.gpus * workers:g} GPUs, but there are {len(devices)} here; "
            "give fewer --workers"
        )
    shares = (devices[int(place * task.gpus) :][: max(1, int(task.gpus))] for place in range(workers))
    return [threads | {"CUDA_VISIBLE_DEVICES": ",".join(share if task.gpus else ())} for share in shares]


def _list_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in named.split(",") if name]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


class _Worker:
    """A process that is started by its first call, and again after it died."""

    _starting = threading.Lock()  # while the environment is that of a worker

    def __init__(self, prepare: Callable[[], object], environment: dict[str, str]) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._prepare, self._environment = prepare, environment
        self._process: Any = None
        self._stopped = False

    def call(self, function: Callable[[A], R], item: A) -> R:
        for _ in range(ATTEMPTS):
            try:
                if self._process is None:
                    self._start()
                self._pipe.send((function, item))
                succeeded, result = self._pipe.recv()
            except (EOFError, ConnectionError):
                if self._stopped:
                    raise
                self._process = None
                continue
            if succeeded:
                return result
            raise result
        raise WorkerDiedError(DIED)

    def stop(self) -> None:
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def join(self) -> None:
        """Waits until the process that was stopped has ended."""
        if self._process is not None:
            self._process.join()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._prepare))
        with self._starting, _change_environment(self._environment):
            process.start()
        self._process = process
        theirs.close()  # so that the pipe ends with the process
        if self._stopped:
            self._process.kill()


@contextlib.contextmanager
def _change_environment(changes: dict[str, str]) -> Iterator[None]:
    """Changes the environment for a process that is started in the block."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: Connection, prepare: Callable[[], object]) -> None:
    """Calls the functions that come through the pipe, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal signals all processes; the first one ends the others
    end_with_starter()
    if importlib.util.find_spec("tqdm"):  # its own lock is a semaphore of the system, left behind by a kill
        from tqdm import tqdm

        tqdm.set_lock(threading.RLock())
    prepare()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            function, item = pipe.recv()
            try:
                answer = True, function(item)
            except Exception as error:
                answer = False, error
            pipe.send(answer)
