"""How long reading takes, in processor time, which other processes do not change by much."""

import contextlib
import time
from collections.abc import Callable

from lakewright.core_jax.errors import InputError

LONG_ANSWER, MOST_SECONDS = 1 << 16, 0.05  # what an answer of so many bytes may take
TRIES = 5


def seconds_of(read: Callable[[str], object], text: str) -> float:
    """The shortest processor time of some tries, whatever comes of them."""
    times = []
    for _ in range(TRIES):
        begun = time.process_time()
        with contextlib.suppress(InputError):
            read(text)
        times.append(time.process_time() - begun)
    return min(times)
