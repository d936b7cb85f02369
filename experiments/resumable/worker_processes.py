"""Processes that work side by side. One that dies costs only its item, which is repeated by a new one."""

import contextlib
import multiprocessing
import queue
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from tqdm import tqdm

from lakewright.core_jax.support import end_with_starter

ATTEMPTS = 3  # at an item whose workers die
A = TypeVar("A")
R = TypeVar("R")


class WorkerDiedError(RuntimeError):
    """A worker died in every attempt: it was killed from outside, or for its memory."""


def side_by_side(
    function: Callable[[A], R], items: Iterable[A], workers: int, begin: Callable[[], object]
) -> Generator[tuple[A, Future[R]]]:
    """Each item with its finished result, in the order in which they finish; closing the generator stops the work.

    function, begin: of a module, or partials of such, as other processes find them by their names. begin: called once
    in each process. A result raises what `function` raised, or WorkerDiedError.
    """
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    processes = [_Worker(begin) for _ in range(workers)]
    for process in processes:
        idle.put(process)

    def on_a_worker(item: A) -> R:
        worker = idle.get()
        try:
            return worker.call(function, item)
        finally:
            idle.put(worker)

    threads = ThreadPoolExecutor(workers)
    try:
        started = {threads.submit(on_a_worker, item): item for item in items}
        for done in as_completed(started):
            yield started[done], done
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.stop()
        threads.shutdown()
        for process in processes:
            process.join()


class _Worker:
    """A process that is started by its first call, and again after it died."""

    def __init__(self, begin: Callable[[], object]) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._begin = begin
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
        raise WorkerDiedError(f"{ATTEMPTS} workers died of it; is there enough memory?")

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
        self._process = self._context.Process(target=_serve, args=(theirs, self._begin))
        self._process.start()
        theirs.close()  # so that the pipe ends with the process
        if self._stopped:
            self._process.kill()


def _serve(pipe: Connection, begin: Callable[[], object]) -> None:
    """Calls the functions that come through the pipe, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal signals all processes; the first one ends the others
    end_with_starter()
    tqdm.set_lock(threading.RLock())  # its own is a semaphore of the system, left behind where a process is killed
    begin()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            function, item = pipe.recv()
            try:
                answer = True, function(item)
            except Exception as error:
                answer = False, error
            pipe.send(answer)
