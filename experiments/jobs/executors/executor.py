"""The interface of all executors, shaped like `concurrent.futures`, and the ways to hand them many tasks.

with Local(workers=2) as executor:
    for item, done in as_finished(executor, function, items):
        print(item, done.result())

An executor of `concurrent.futures` itself, of mpi4py or of Dask does as well.
"""

import dataclasses
import functools
import importlib.util
import itertools
import os
import queue
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from lakewright.core_jax.support import keep_compiled_programs

AT_ONCE = 1 << 14  # tasks that a cluster has at a time, running or waiting: enough to show it how large it should be
ATTEMPTS = 3  # at a task whose workers die
DIED = f"{ATTEMPTS} workers died on it; is there enough memory?"
A = TypeVar("A")
R = TypeVar("R")


class WorkerDiedError(RuntimeError):
    """A worker died in every attempt: it was killed from outside, or for its memory."""


class ClusterLostError(RuntimeError):
    """A cluster went away while it worked."""


class NodeLostError(RuntimeError):
    """A node was lost that had a part of a task; the task begins again."""


class Executor(Protocol):
    """Calls functions that can be imported, or `functools.partial`s of such, in other processes.

    An attribute `at_once`, if there is one, says how many tasks it is given at a time; `elsewhere`, that it works on
    machines that may have what this one has not, such as a GPU. `separate` says that it works in other processes of
    this machine, which can read its files.
    """

    def submit(self, function: Callable[[A], R], item: A, /) -> Future[R]:
        """The future result of `function(item)`; it raises what `function` raised, or WorkerDiedError."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the executor. wait: returns when nothing runs any more. cancel_futures: nothing else is begun."""


class Serial:
    """This process, one task after another."""

    at_once = 1

    def submit(self, function: Callable[[A], R], item: A, /) -> Future[R]:
        """Like `Executor.submit`, finished when it returns."""
        done: Future[R] = Future()
        try:
            done.set_result(function(item))
        except Exception as error:
            done.set_exception(error)
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor.shutdown`."""


SERIAL = Serial()


@functools.cache
def prepare_one_core() -> None:
    """Limits this process to one core and, unless JAX_PLATFORMS is set, to the CPU; to be called before JAX is used."""
    os.environ["NPROC"] = "1"
    if "JAX_PLATFORMS" not in os.environ and importlib.util.find_spec("jax"):
        import jax

        jax.config.update("jax_platforms", "cpu")
    keep_compiled_programs()


@dataclasses.dataclass(frozen=True)
class Task:
    """The resources of each task of an executor.

    name: what it is called in messages. cores, gpus, memory: for the machine that it runs on. Without `cores` it has an
    equal share of this machine's, on a cluster one; without `gpus` all tasks share what there is, and 0.5 is half of
    one; memory is in bytes. prepare: called in each process before its tasks. processes: that each task starts; if
    no node of a cluster has room for all of them, they are divided among several. spreads: without `--workers` such
    tasks use all of this machine.
    """

    name: str = "task"
    cores: int | None = 1
    gpus: float | None = None
    memory: int = 0
    prepare: Callable[[], object] = prepare_one_core
    processes: int = 1
    spreads: bool = False


def as_finished(
    executor: Executor, function: Callable[[A], R], items: Iterable[A]
) -> Generator[tuple[A, Future[R]], None, None]:
    """Each item with its finished result, in the order in which they finish.

    Closing the generator, or an error in its loop, ends the executor and all that it works on.
    """
    waiting, running = iter(items), 0
    finished: queue.SimpleQueue[tuple[A, Future[R]]] = queue.SimpleQueue()
    try:
        while True:
            for item in itertools.islice(waiting, count_at_once(executor) - running):
                running += 1
                future = executor.submit(function, item)
                future.add_done_callback(functools.partial(_put, finished, item))
            if not running:
                return
            yield finished.get()
            running -= 1
    except BaseException:
        executor.shutdown(wait=True, cancel_futures=True)
        raise


def _put(finished: queue.SimpleQueue[tuple[A, Future[R]]], item: A, future: Future[R]) -> None:
    finished.put((item, future))


def in_order(
    executor: Executor, function: Callable[[A], R], items: Iterable[A], most: int = AT_ONCE
) -> Generator[R, None, None]:
    """Yields the results in the order of the items; closing the iterator does the same as with `as_finished`.

    Args:
        executor: runs the calls.
        function: called with one item.
        items: taken as they are needed.
        most: items that are worked on at a time.

    Raises what `function` raised, and WorkerDiedError.
    """
    waiting, running = iter(items), deque[Future[R]]()
    try:
        while True:
            for item in itertools.islice(waiting, max(0, min(most, count_at_once(executor)) - len(running))):
                running.append(executor.submit(function, item))
            if not running:
                return
            yield running.popleft().result()
    except BaseException:
        executor.shutdown(wait=True, cancel_futures=True)
        raise


def count_at_once(executor: Executor) -> int:
    """The number of tasks that an executor is given at a time."""
    return getattr(executor, "at_once", AT_ONCE)


def is_elsewhere(executor: Executor) -> bool:
    """Whether an executor works on other machines."""
    return getattr(executor, "elsewhere", False)


def is_separate(executor: Executor) -> bool:
    """Whether an executor works in other processes of this machine."""
    return getattr(executor, "separate", False)
