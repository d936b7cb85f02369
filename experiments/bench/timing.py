"""Seconds of a call, and its rate: the median of several, compile time separate."""

import functools
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

from lakewright.experiments.bench.measurement import Measurement

REPEATS = 5
R = TypeVar("R")


def time_call(
    work: str, size: int, agents: int, count: int, call: Callable[[int], R], what: str = "boards"
) -> tuple[Measurement, R]:
    """The rate of a function, and what its last call returned.

    Args:
        work: The name of the work in the table.
        size: Cells on a side of the boards.
        agents: Agents on a board.
        count: How many things a call handles.
        call: Gets a new seed each time.
        what: The things that are counted.
    """
    first, _, result = wall_and_processor(functools.partial(call, 0))
    later = []
    for seed in range(1, REPEATS + 1):
        seconds, _, result = wall_and_processor(functools.partial(call, seed))
        later.append(seconds)
    rates = [count / seconds for seconds in later]
    return Measurement(
        work=work,
        size=size,
        agents=agents,
        what=what,
        boards=count,
        rate=statistics.median(rates),
        rates=rates,
        compile_seconds=max(first - statistics.median(later), 0.0),
    ), result


def wall_and_processor(call: Callable[[], R]) -> tuple[float, float, R]:
    """Seconds of a call on the wall and of the processor, and what it returned."""
    begun = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - begun[0], time.process_time() - begun[1], result
