"""Progress: bars with a rate, on a terminal only and quiet in a pipe, and reports of work on a file."""

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm


@contextmanager
def progress(what: str, total: int | None, unit: str) -> Iterator["tqdm"]:
    """A progress bar on standard error; call its `update(n)`. It stays on the screen once it is complete."""
    from tqdm import tqdm

    with tqdm(total=total, desc=what, unit=f" {unit}", disable=None, leave=True, dynamic_ncols=True) as bar:
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
    """Prints a line of progress for a person who watches; nothing in a pipe."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)


@dataclasses.dataclass(frozen=True)
class Watch:
    """on_resume: gets the rows that an earlier run finished. on_progress: rows as they are done. on_bad_row: what is
    wrong with a row that is left out.
    """

    on_resume: Callable[[int], object] = lambda rows: None
    on_progress: Callable[[int], None] = lambda rows: None
    on_bad_row: Callable[[str], object] = lambda problem: None


UNWATCHED = Watch()
