"""The number of torch's threads: as many as cores are free of other work, measured repeatedly while it trains.

Threads that share a core with other work wait for each other at every operation: with one of two cores busy, a GRPO
step took twice as long on two threads as on one.
"""

import os
import time

import psutil
import torch

from lakewright.core_jax.support import count_cores

INTERVAL = 2.0  # seconds between two measurements


class FreeCores:
    """Adapts torch's threads to the cores that other processes leave free, unless OMP_NUM_THREADS is set."""

    def __init__(self) -> None:
        self._fixed = "OMP_NUM_THREADS" in os.environ
        self._cores = count_cores()
        self._process = psutil.Process()
        self._last = self._measure_use()

    def adapt(self) -> None:
        """Sets torch's threads by the load since the last call; to be called between steps."""
        now = self._measure_use()
        elapsed, others = now[0] - self._last[0], now[1] - self._last[1]
        if self._fixed or elapsed < INTERVAL:
            return
        self._last = now
        torch.set_num_threads(free_cores(self._cores, others / elapsed))

    def _measure_use(self) -> tuple[float, float]:
        """The time, and the processor seconds that others have used so far."""
        system, own = psutil.cpu_times(), self._process.cpu_times()
        idle = system.idle + getattr(system, "iowait", 0.0)
        return time.monotonic(), sum(system[:8]) - idle - own.user - own.system


def free_cores(cores: int, others: float) -> int:
    """Whole cores left by other work that keeps `others` cores busy, at least one."""
    return max(1, min(cores, round(cores - others)))
