"""Many pieces of long work: one after the other in this process, or side by side in processes that end with it."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

from core_jax.support import end_with_starter

T = TypeVar("T")
R = TypeVar("R")


def work_on(pieces: Sequence[T], work: Callable[[T], R], workers: int) -> Iterator[tuple[T, R]]:
    """Each piece with what `work` returned for it, in the order in which they finish; what `work` raises is raised.

    work: a function of a module, as other processes find it by its name.
    """
    if workers == 1:
        for piece in pieces:
            yield piece, work(piece)
        return
    context = multiprocessing.get_context("spawn")
    with _few_threads(workers), ProcessPoolExecutor(workers, context, initializer=_begin) as pool:
        started = {pool.submit(work, piece): piece for piece in pieces}
        try:
            for future in as_completed(started):
                yield started[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _few_threads(workers: int) -> Iterator[None]:
    """Gives each worker its share of the cores, which it reads when it imports torch."""
    if "OMP_NUM_THREADS" in os.environ:
        yield
        return
    os.environ["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // workers))
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]


def _begin() -> None:
    """Makes a worker quiet."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    end_with_starter()
