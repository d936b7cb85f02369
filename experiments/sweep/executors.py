"""Who makes the shards: processes of this machine, or a Ray cluster.

An executor is whatever has `map(function, items)`, which yields the results as they come, in any order; those of
`concurrent.futures` and of mpi4py serve as well.
"""

import contextlib
import itertools
import logging
import multiprocessing
import os
import queue
import signal
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeAlias, TypeVar

from core_jax.errors import InputError
from core_jax.support import cores, end_with_starter
from experiments.sweep.worker_process import prepare

ATTEMPTS = 3  # at an item whose worker dies
A = TypeVar("A")
R = TypeVar("R")
Results: TypeAlias = Generator[R, None, None]


class Executor(Protocol):
    """Calls a function that can be imported, or a `functools.partial` of one, on items."""

    def map(self, function: Callable[[A], R], items: Iterable[A], /) -> Results[R]:
        """Yields the results in any order; raises what `function` raises. Closed, it works no more."""


class WorkerDiedError(RuntimeError):
    """A worker died as often as it was tried: killed from outside, or for its memory."""


class Here:
    """This process, one item after another."""

    def map(self, function: Callable[[A], R], items: Iterable[A], /) -> Results[R]:
        """As `Executor.map`."""
        for item in items:
            yield function(item)


class Local:
    """Spawned processes, each on one core. One that dies costs its item only, which is tried again."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def map(self, function: Callable[[A], R], items: Iterable[A], /) -> Results[R]:
        """As `Executor.map`."""
        idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        workers = [_Worker() for _ in range(self.workers)]
        for worker in workers:
            idle.put(worker)

        def on_a_worker(item: A) -> R:
            worker = idle.get()
            try:
                return worker.call(function, item)
            finally:
                idle.put(worker)

        threads = ThreadPoolExecutor(self.workers)
        try:
            for done in as_completed([threads.submit(on_a_worker, item) for item in items]):
                yield done.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.stop()
            threads.shutdown()
            for worker in workers:
                worker.join()


class _Worker:
    """A process that is there from its first call on, and again after it died."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
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
        raise WorkerDiedError(f"{item}: {ATTEMPTS} workers died of it; is there enough memory?")

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
        self._process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()  # so that the pipe ends with the process
        if self._stopped:
            self._process.kill()


def _serve(pipe: Connection) -> None:
    """Calls what comes through the pipe, until it ends with the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal signals all processes; the first one ends the others
    end_with_starter()
    prepare()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            function, item = pipe.recv()
            try:
                answer = True, function(item)
            except Exception as error:
                answer = False, error
            pipe.send(answer)


class Ray:
    """Tasks of Ray Core, each on one core, on the cluster that RAY_ADDRESS names, or on one of its own here.

    A task whose worker dies is tried again. workers: cores of the cluster of its own, else tasks at once.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers

    def map(self, function: Callable[[A], R], items: Iterable[A], /) -> Results[R]:
        """As `Executor.map`. Raises InputError where Ray is not installed."""
        with _cluster(self._workers) as (ray, at_once):
            call = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(_call)
            waiting = iter(items)
            running = [call.remote(function, item) for item in itertools.islice(waiting, at_once)]
            try:
                while running:
                    done, running = ray.wait(running)
                    running += [call.remote(function, item) for item in itertools.islice(waiting, len(done))]
                    yield from ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except ray.exceptions.WorkerCrashedError as error:
                raise WorkerDiedError(f"{ATTEMPTS} workers died of a shard; is there enough memory?") from error
            finally:
                for task in running:
                    ray.cancel(task, force=True)


def _call(function: Callable[[A], R], item: A) -> R:
    prepare()
    return function(item)


@contextlib.contextmanager
def _cluster(workers: int | None) -> Iterator[tuple[Any, int]]:
    """Yields Ray, connected for the time being if it was not before, and how many tasks it is given at once."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise InputError("Ray is not installed; pip install lakewright[cluster], or choose --backend local") from error
    connected = ray.is_initialized()
    of_its_own = not connected and "RAY_ADDRESS" not in os.environ
    if not connected:
        here: dict[str, Any] = {"num_cpus": workers or cores(), "include_dashboard": False} if of_its_own else {}
        with warnings.catch_warnings():  # it forks to execute another program at once, which JAX takes for a danger
            warnings.simplefilter("ignore", RuntimeWarning)
            ray.init(logging_level=logging.ERROR, **here)
    try:
        # As many again wait at the workers, so that none is idle between two.
        waiting = 2 * int(ray.cluster_resources()["CPU"])
        yield ray, waiting if of_its_own else workers or waiting
    finally:
        if not connected:
            ray.shutdown()


BACKENDS: dict[str, type[Local] | type[Ray]] = {"local": Local, "ray": Ray}
