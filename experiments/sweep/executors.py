"""Executors, which make the shards: this process, processes of this machine, or a Ray cluster.

An executor is anything with `map(function, items)` that yields the results in any order, such as those of
`concurrent.futures` and mpi4py.
"""

import contextlib
import functools
import itertools
import logging
import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias, TypeVar

import jax

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import cores
from lakewright.experiments.resumable.worker_processes import ATTEMPTS, WorkerDiedError, side_by_side
from lakewright.experiments.runtime.library_setup import keep_compiled_programs

A = TypeVar("A")
R = TypeVar("R")
Results: TypeAlias = Generator[R, None, None]


class Executor(Protocol):
    """Calls a function that can be imported, or a `functools.partial` of one, on items."""

    def map(self, function: Callable[[A], R], items: Iterable[A], /) -> Results[R]:
        """Yields the results in any order; raises what `function` raises. Closing the generator stops the work."""


class Serial:
    """This process, one item after another."""

    def map(self, function: Callable[[A], R], items: Iterable[A], /) -> Results[R]:
        """As `Executor.map`."""
        for item in items:
            yield function(item)


class Local:
    """Spawned processes, each on one core. One that dies costs only its item, which is repeated."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def map(self, function: Callable[[A], R], items: Iterable[A], /) -> Results[R]:
        """As `Executor.map`."""
        with contextlib.closing(side_by_side(function, items, self.workers, prepare_worker)) as finished:
            for item, done in finished:
                yield _result_of(item, done)


def _result_of(item: A, done: Future[R]) -> R:
    try:
        return done.result()
    except WorkerDiedError as error:
        raise WorkerDiedError(f"{item}: {error}") from None


class Ray:
    """Tasks of Ray Core, each on one core, on the cluster that RAY_ADDRESS names, or on one of its own here.

    A task whose worker dies is repeated. workers: the cores of a cluster started here, else the tasks at a time.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers

    def map(self, function: Callable[[A], R], items: Iterable[A], /) -> Results[R]:
        """As `Executor.map`. Raises InputError where Ray is not installed."""
        with _connect_cluster(self._workers) as (ray, at_once):
            call = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(_call_prepared)
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


def _call_prepared(function: Callable[[A], R], item: A) -> R:
    prepare_worker()
    return function(item)


@contextlib.contextmanager
def _connect_cluster(workers: int | None) -> Iterator[tuple[Any, int]]:
    """Yields Ray, connected for this block if it was not before, and how many tasks it gets at a time."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise InputError("Ray is not installed; pip install lakewright[cluster], or choose --backend local") from error
    connected = ray.is_initialized()
    of_its_own = not connected and "RAY_ADDRESS" not in os.environ
    if not connected:
        here: dict[str, Any] = {"num_cpus": workers or cores(), "include_dashboard": False} if of_its_own else {}
        with warnings.catch_warnings():  # JAX warns of forks, but this one executes another program at once
            warnings.simplefilter("ignore", RuntimeWarning)
            ray.init(logging_level=logging.ERROR, **here)
    try:
        # Twice as many tasks as cores, so that no worker is idle between two of them.
        waiting = 2 * int(ray.cluster_resources()["CPU"])
        yield ray, waiting if of_its_own else workers or waiting
    finally:
        if not connected:
            ray.shutdown()


BACKENDS: dict[str, type[Local] | type[Ray]] = {"local": Local, "ray": Ray}


@functools.cache
def prepare_worker() -> None:
    """Limits this process to one core and, unless JAX_PLATFORMS is set, to the CPU; to be called before JAX is used."""
    os.environ["NPROC"] = "1"
    if "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")
    keep_compiled_programs()
