"""A clock that jumps: Python imports this first wherever its folder is on the path, so in all workers too."""

import random
import time

YEARS = 10 * 365 * 86400.0  # seconds
_real = time.time


def _jumping() -> float:
    return _real() + random.uniform(-YEARS, YEARS)


time.time = _jumping
time.time_ns = lambda: int(_jumping() * 1e9)
