"""Many pieces of long work: one after the other in this process, or side by side in processes that end with it."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from lakewright.experiments.resumable.worker_processes import WorkerDiedError, side_by_side

T = TypeVar("T")
R = TypeVar("R")


def work_on(pieces: Sequence[T], work: Callable[[T], R], workers: int) -> Iterator[tuple[T, R | WorkerDiedError]]:
    """Each piece with what `work` returned for it, in the order in which they finish; what `work` raises is raised.

    work: a function of a module, as other processes find it by its name. A piece of which every worker died comes with
    a WorkerDiedError instead.
    """
    if workers == 1:
        for piece in pieces:
            yield piece, work(piece)
        return
    with _few_threads(workers):
        for piece, done in side_by_side(work, pieces, workers, _be_quiet):
            try:
                found: R | WorkerDiedError = done.result()
            except WorkerDiedError as error:
                found = error
            yield piece, found


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


def _be_quiet() -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
