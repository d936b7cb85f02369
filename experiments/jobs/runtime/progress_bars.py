"""Progress: bars with a rate on a terminal, lines where a command asks for them, and reports of work on a file."""

import contextvars
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from tqdm import tqdm

if TYPE_CHECKING:
    from tqdm import tqdm

Form = Literal["bars", "lines", "silent"]
_FORM: contextvars.ContextVar[Form] = contextvars.ContextVar("form", default="bars")


@contextmanager
def showing_progress(form: Form) -> Iterator[None]:
    """Show progress in this form within the block.

    `bars` are drawn on a terminal only; `lines` are printed if there isn't any; `silent` shows nothing anywhere.
    """
    token = _FORM.set(form)
    try:
        yield
    finally:
        _FORM.reset(token)


@contextmanager
def progress(what: str, total: int | None, unit: str, minutes: float | None = None) -> Iterator["tqdm"]:
    """A progress bar on standard error; call its `update(n)`. It stays on the screen once it is complete.

    Args:
        what, total, unit: the work, how much of it there is, and in what it is counted.
        minutes: that end the work if it does not end earlier.
    """
    form = _FORM.get()
    if form == "lines" and not sys.stderr.isatty():
        yield ProgressLines(what, total, unit, minutes)
        return
    from tqdm import tqdm

    disable = True if form == "silent" else None
    with tqdm(total=total, desc=what, unit=f" {unit}", disable=disable, leave=True, dynamic_ncols=True) as bar:
        yield bar


@contextmanager
def show_seconds(what: str) -> Iterator[Callable[[], None]]:
    """Yields a function to be called now and then, which shows on a terminal how long the block has taken so far."""
    begun = time.monotonic()

    def tick() -> None:
        if sys.stderr.isatty():
            print(f"\r{what}: {time.monotonic() - begun:.0f} s", end="", file=sys.stderr, flush=True)

    try:
        yield tick
    finally:
        if sys.stderr.isatty():
            print(file=sys.stderr)


def print_on_terminal(text: str) -> None:
    """Prints a line of progress for a person who watches; nothing in a pipe, unless lines are asked for."""
    form = _FORM.get()
    if form != "silent" and sys.stderr.isatty():
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)
    elif form == "lines":
        print(text, file=sys.stderr, flush=True)


@dataclasses.dataclass(frozen=True)
class Watch:
    """on_resume: gets the rows that an earlier run finished. on_progress: rows as they are done. on_bad_row: what is
    wrong with a row that is left out.
    """

    on_resume: Callable[[int], object] = lambda rows: None
    on_progress: Callable[[int], None] = lambda rows: None
    on_bad_row: Callable[[str], object] = lambda problem: None


UNWATCHED = Watch()


PAUSE = 60.0  # seconds between two lines of the same work


class ProgressLines(tqdm):
    """A bar of tqdm that prints a line now and then.

    Args:
        what, total, unit: the work, how much of it there is, and in what it is counted.
        minutes: that end the work if it does not end earlier.
        clock: gives the seconds.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str,
        minutes: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # tqdm draws nothing: a thread of its own would otherwise redraw a bar that is slow.
        super().__init__(total=total, desc=what, unit=unit, disable=True)
        self._work, self._total, self._minutes, self._clock = f"{what}: ", total, minutes, clock
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
        ends += [60 * self._minutes - seconds] if self._minutes else []
        left = f", {_format_time(min(ends))} left" if ends else ""
        figures = "".join(f", {name} {value}" for name, value in self._figures.items())
        return f"  {self._work}{self.n:g}{of} {self._unit}, {rate:.3g} a second{figures}{left}"


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
