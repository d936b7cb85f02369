"""Progress in lines, for a log: for each piece of work about one a minute, with its rate, figures and the time left.

A file of its own, because it needs tqdm, which the base does not bring.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

PAUSE = 60.0  # seconds between two lines of the same work


class ProgressLines(tqdm):
    """A bar of tqdm that prints a line now and then.

    Args:
        what, total, unit: the name of the work, its amount, and the unit of the amount.
        minutes: the time limit of the work.
        spent: seconds of that time that an interrupted run took.
        clock: gives the time in seconds.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str,
        minutes: float | None = None,
        spent: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # tqdm draws nothing: a thread of its own would otherwise redraw a bar that is slow.
        super().__init__(total=total, desc=what, unit=unit, disable=True)
        self._work, self._total, self._clock = f"{what}: ", total, clock
        self._limit = 60 * minutes - spent if minutes else None
        self._unit, self._figures = unit, dict[str, Any]()
        self._begun = self._printed = clock()
        self.initial = self.n = 0

    def update(self, n: float | None = 1) -> None:
        """Add units that were done, and print a line if the last is a minute old."""
        self.n += int(n or 0)
        if self._clock() - self._printed >= PAUSE:
            self._printed = self._clock()
            print(self.describe(), file=sys.stderr, flush=True)

    def set_postfix(self, ordered_dict: Any = None, refresh: bool | None = True, **figures: Any) -> None:
        """Set figures that the next line shows."""
        self._figures = figures

    def describe(self) -> str:
        """Return the line: units that were done before, as by an interrupted run, count in no rate."""
        seconds = self._clock() - self._begun
        rate = (self.n - self.initial) / seconds if seconds else 0.0
        of = f" of {self._total}" if self._total else ""
        ends = [(self._total - self.n) / rate] if self._total and rate else []
        ends += [] if self._limit is None else [self._limit - seconds]
        left = f", {_format_time(min(ends))} left" if ends else ""
        figures = "".join(f", {name} {value}" for name, value in self._figures.items())
        return f"  {self._work}{self.n:g}{of} {self._unit}, {rate:.3g} a second{figures}{left}"


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
