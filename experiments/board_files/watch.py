"""The reports of progress of work on a file."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Watch:
    """on_resume: gets the rows that an earlier run finished. on_progress: rows as they are done. on_bad_row: what is
    wrong with a row that is left out.
    """

    on_resume: Callable[[int], object] = lambda rows: None
    on_progress: Callable[[int], None] = lambda rows: None
    on_bad_row: Callable[[str], object] = lambda problem: None


UNWATCHED = Watch()
