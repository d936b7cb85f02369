"""Progress: bars with a rate on a terminal, lines where a command asks for them, and reports of work on a file."""

import contextvars
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tqdm import tqdm

ProgressForm = Literal["bars", "lines", "silent"]
_FORM: contextvars.ContextVar[ProgressForm] = contextvars.ContextVar("form", default="bars")


@contextmanager
def showing_progress(form: ProgressForm) -> Iterator[None]:
    """Show progress in this form within the block.

    `bars` are drawn on a terminal only; `lines` are printed without a terminal; `silent` shows nothing anywhere.
    """
    token = _FORM.set(form)
    try:
        yield
    finally:
        _FORM.reset(token)


@contextmanager
def progress(
    what: str, total: int | None, unit: str, minutes: float | None = None, spent: float = 0.0
) -> Iterator["tqdm"]:
    """A progress bar on standard error; call its `update(n)`. It stays on the screen once it is complete.

    Args:
        what, total, unit: the name of the work, its amount, and the unit of the amount.
        minutes: the time limit of the work.
        spent: seconds of that time that an interrupted run took; its units, `initial`, count in no rate.
    """
    form = _FORM.get()
    if form == "lines" and not sys.stderr.isatty():
        from lakewright.experiments.jobs.runtime.progress_lines import ProgressLines

        yield ProgressLines(what, total, unit, minutes, spent)
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
    """on_resume: gets the rows that an earlier run finished. on_progress: gets rows as they are done. on_bad_row: gets
    the error of a row that is left out.
    """

    on_resume: Callable[[int], object] = lambda rows: None
    on_progress: Callable[[int], None] = lambda rows: None
    on_bad_row: Callable[[str], object] = lambda problem: None


UNWATCHED = Watch()
