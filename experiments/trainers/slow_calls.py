"""A line about code of an environment that takes long, because a trainer waits for it and shows nothing.

The call is not ended. The process is not changed: it gets no alarm, and a thread only while such calls run.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from lakewright.core_jax.errors import one_line

LATE = 60.0  # seconds
LOG = logging.getLogger("lakewright")  # without handlers, as by default, Python prints its warnings to standard error


class RunningCall(msgspec.Struct, eq=False):
    """A call that has not returned. seconds, due: when it is named, after its beginning and as `time.monotonic`."""

    name: str
    describe: Callable[[], str]
    seconds: float
    due: float


class SlowCallLog:
    """Logs one line on each call that takes long, while it is still running.

    A call that never ends is always named. Calls with one name are named again only if they take twice as long as the
    last time, so that a slow tool doesn't fill the log.
    """

    def __init__(self, remedy: str, seconds: float = LATE) -> None:
        """Makes a log. remedy: the advice in each line. seconds: the time after which the first line comes."""
        self._remedy, self._seconds = remedy, seconds
        self._after: dict[str, float] = {}  # seconds, by the name of a call
        self._running: dict[RunningCall, None] = {}
        self._watcher: threading.Thread | None = None

    @contextlib.contextmanager
    def watch(self, name: str, describe: Callable[[], str]) -> Iterator[None]:
        """Watches a block. name: the call's name. describe: gives the place and the problem, needed only for a line."""
        seconds = self._after.get(name, self._seconds)
        call = RunningCall(name, describe, seconds, time.monotonic() + seconds)
        self._running[call] = None
        watcher = self._watcher
        if watcher is None or not watcher.is_alive():  # it does not live on in a copy of the process
            self._watcher = threading.Thread(target=self._watch_running, name="slow calls", daemon=True)
            self._watcher.start()
        try:
            yield
        finally:
            del self._running[call]

    def _watch_running(self) -> None:
        """The watching thread, which ends once no call is running."""
        while self._running:
            time.sleep(min(1.0, self._seconds / 4))
            for call in list(self._running):
                if call.due <= time.monotonic():
                    self._name(call)
            if not self._running:
                # In this order, and without a lock, which a copy of the process might inherit locked: a call that
                # begins now finds no watcher, or is found here.
                self._watcher = None

    def _name(self, call: RunningCall) -> None:
        self._after[call.name] = 2 * call.seconds
        call.due = float("inf")
        LOG.warning(
            one_line(f"{call.describe()}: has not returned after {call.seconds:g} s and is not ended; {self._remedy}")
        )
