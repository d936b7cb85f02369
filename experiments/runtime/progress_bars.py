"""Progress bars with a rate: on a terminal only, quiet in a pipe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress(what: str, total: int | None, unit: str) -> Iterator[tqdm]:
    """A bar on standard error that is told `update(n)`; its place is taken by the next line once it ends."""
    with tqdm(total=total, desc=what, unit=f" {unit}", disable=None, leave=True, dynamic_ncols=True) as bar:
        yield bar


def say(text: str) -> None:
    """A line for a person who watches; nothing in a pipe."""
    if sys.stderr.isatty():
        tqdm.write(text, file=sys.stderr)
