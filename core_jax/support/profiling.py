"""Profiling: seconds of each phase of a computation, summed over its threads.

A phase is a plain call unless `seconds_by_phase` is at work. Then it waits for its result, which JAX would otherwise
still compute during the next phase, and the time of phases within it counts for those only.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

REST = "the rest"
WAITING = "waiting"  # for other threads, which count their own time
P = ParamSpec("P")
R = TypeVar("R")


class _Clock:
    """Seconds by phase, over all threads of this process."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._thread = threading.local()

    def time(self, phase: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        outer = getattr(self._thread, "inner", 0.0)
        self._thread.inner = 0.0
        begun = time.perf_counter()
        try:
            return jax.block_until_ready(function(*args, **kwargs))
        finally:
            passed = time.perf_counter() - begun
            with self._lock:
                self.seconds[phase] += passed - self._thread.inner
            self._thread.inner = outer + passed


_clock: _Clock | None = None


def in_phase(phase: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls `function`; if `seconds_by_phase` is at work, its time counts for the phase."""
    clock = _clock
    return clock.time(phase, function, *args, **kwargs) if clock else function(*args, **kwargs)


def seconds_by_phase(function: Callable[[], object]) -> dict[str, float]:
    """Calls `function` and returns the seconds of its phases and of the REST; one at a time in a process."""
    global _clock
    _clock = clock = _Clock()
    try:
        clock.time(REST, function)
    finally:
        _clock = None
    return {phase: seconds for phase, seconds in clock.seconds.items() if phase != WAITING}
