"""The rate of a call: the median of several, compile time separate."""

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

from experiments.bench.measurement import Measurement

REPEATS = 5
R = TypeVar("R")


def timed(
    work: str, size: int, agents: int, count: int, call: Callable[[int], R], what: str = "boards"
) -> tuple[Measurement, R]:
    """The rate of `call`, which handles `count` things under a new seed each time, and what its last call returned."""
    first, result = _seconds(call, 0)
    later = []
    for seed in range(1, REPEATS + 1):
        seconds, result = _seconds(call, seed)
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


def _seconds(call: Callable[[int], R], seed: int) -> tuple[float, R]:
    begun = time.perf_counter()
    result = call(seed)
    return time.perf_counter() - begun, result
