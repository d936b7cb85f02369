"""A line about code of an environment that takes long, because a trainer waits for it and shows nothing.

The call is not ended. The process is not changed: it gets no alarm, and a thread only while such a call runs.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from lakewright.core_jax.errors import one_line

LATE = 60.0  # seconds
LOG = logging.getLogger("lakewright")  # without handlers, as by default, Python prints its warnings to standard error


class SlowCallLog:
    """Logs one line on each call that takes long, while it is still running.

    Calls of one name are named again only if they take twice as long as the last time. So a slow tool doesn't fill the
    log, and a call that never ends is always named.
    """

    def __init__(self, remedy: str, seconds: float = LATE) -> None:
        """Makes a log. remedy: the advice in each line. seconds: the time after which the first line comes."""
        self._remedy, self._seconds = remedy, seconds
        self._after: dict[str, float] = {}  # seconds, by the name of a call

    @contextlib.contextmanager
    def watch(self, name: str, describe: Callable[[], str]) -> Iterator[None]:
        """Watches a block. name: the call's. describe: gives the place and the problem, needed only for a line."""
        seconds = self._after.get(name, self._seconds)
        timer = threading.Timer(seconds, self._name, (name, describe, seconds))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # so that no thread is left, which a process that is copied now would lose

    def _name(self, name: str, describe: Callable[[], str], seconds: float) -> None:
        self._after[name] = 2 * seconds
        LOG.warning(one_line(f"{describe()}: has not returned after {seconds:g} s and is not ended; {self._remedy}"))
