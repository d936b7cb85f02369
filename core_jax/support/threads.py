"""Threads on all cores, for work that releases the interpreter lock, as Arrow, numba and XLA do."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def cores() -> int:
    """The number of cores this process may use: NPROC if set, which XLA respects too."""
    return int(os.environ.get("NPROC") or count_cores())


def count_cores() -> int:
    """The number of cores that the system lets this process use; macOS and Windows tell only how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[[A], R], items: Sequence[A]) -> list[R]:
    """`function` of every item, in order."""
    if len(items) < 2 or cores() < 2:
        return list(map(function, items))
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(function, items))
