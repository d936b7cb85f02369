"""Blocks of work on all cores: XLA leaves the interpreter free, and one small program uses one core only."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def on_all_cores(function: Callable[[A], R], items: Sequence[A]) -> list[R]:
    """`function` of every item, in order. Call it once for one item first where it has yet to compile."""
    if len(items) < 2 or cores() < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(function, items))
