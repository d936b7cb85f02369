"""Many pieces of long work, one after the other here or side by side in processes that end with this one."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.connection import wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def work_on(pieces: Sequence[T], work: Callable[[T], R], workers: int) -> Iterator[tuple[T, R]]:
    """`work`, which another process must find by name, on each piece, as each is done; what it raises comes out."""
    if workers == 1:
        for piece in pieces:
            yield piece, work(piece)
        return
    threads = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": str(_threads(workers))}
    os.environ.update(threads)  # read when a process imports torch
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(workers, context, initializer=_begin) as pool:
            started = {pool.submit(work, piece): piece for piece in pieces}
            try:
                for future in as_completed(started):
                    yield started[future], future.result()
            finally:
                pool.shutdown(cancel_futures=True)
    finally:
        for name in threads:
            del os.environ[name]


def _threads(workers: int) -> int:
    return max(1, len(os.sched_getaffinity(0)) // workers)


def _begin() -> None:
    """A worker is quiet, and ends when the process that started it does, however that ends."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    parent = multiprocessing.parent_process()
    assert parent
    threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
