"""Parts are made by an executor, side by side, and added in the order of the input.

Processes of this machine get sections of a file, so that they read and check rows, work on them, and write them: what
this process does for a part is to name its section, commit it and join it to the others. Work in this process, or on
another machine that may not have the file, gets rows that were read here.
"""

import contextlib
import functools
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import (
    Chunk,
    Section,
    cut_sections,
    join_sections,
    kinds_of,
    places_by_kind,
    read_chunks,
    read_columns,
)
from lakewright.core_jax.support import in_threads
from lakewright.experiments.jobs.executors.executor import (
    SERIAL,
    Executor,
    in_order,
    is_elsewhere,
    is_separate,
)
from lakewright.experiments.jobs.resumable.part_files import Made, Part, PartFiles, Saved
from lakewright.experiments.jobs.resumable.parts import MOST_LISTED, Parts

# A part takes about SECONDS of work, as a kill loses at most one part. It begins with FEWEST_ROWS. SOME_ROWS are enough
# for few kinds of boards. Many kinds need ROWS_A_KIND each, so that the solver's blocks are full, up to MOST_ROWS and
# MOST_BYTES, which bound the memory.
SECONDS = 10.0
FEWEST_ROWS, SOME_ROWS, ROWS_A_KIND, MOST_ROWS, MOST_BYTES = 512, 1 << 15, 1 << 11, 1 << 16, 1 << 25
AHEAD = 64  # parts that another machine has at a time: they lie in the memory of this one
A = TypeVar("A")
C = TypeVar("C", Chunk, Section)
R = TypeVar("R")
Worked: TypeAlias = tuple[pa.RecordBatch, dict[str, int]]
Check: TypeAlias = Callable[[pa.RecordBatch], Mapping[int, str | InputError]]


class Pace:
    """The number of rows of the next part."""

    def __init__(self) -> None:
        self.rows = FEWEST_ROWS

    def take_chunks(self, chunks: Iterator[C]) -> list[C]:
        """The next part, or nothing at the end."""
        taken: list[C] = []
        rows = size = 0
        while rows < self.rows and size < MOST_BYTES and (chunk := next(chunks, None)) is not None:
            taken.append(chunk)
            rows, size = rows + len(chunk), size + chunk.nbytes
        return taken

    def adapt(self, seconds: float, kinds: int) -> None:
        """Learns how long a part took, and how many kinds of boards were in it."""
        if seconds < SECONDS / 2:
            faster = 2 if seconds > SECONDS / 8 else 8
            self.rows = min(faster * self.rows, max(SOME_ROWS, ROWS_A_KIND * kinds), MOST_ROWS)
        elif seconds > SECONDS:
            self.rows = max(self.rows // 2, FEWEST_ROWS)


def work_in_parts(
    source: Path,
    parts: Parts,
    check: Check,
    work: Callable[[Any], Worked],
    report: Callable[[str], object],
    executor: Executor = SERIAL,
    give: Callable[[pa.RecordBatch], Any] | None = None,
    on_progress: Callable[[int], object] = lambda rows: None,
) -> None:
    """Processes the rows of a file that `parts` does not cover yet, and adds their results part by part.

    Args:
        source: The file.
        parts: Its finished parts.
        check: Checks rows; those that it returns, each with an error by its place, are left out.
        work: Makes the rows of a part, and counts, from the result of `give` for this part.
        report: Gets the error of each row that is left out, again for parts that were finished before; of many such
            rows only the first MOST_LISTED.
        executor: Makes the calls; if it has other processes, the functions must be importable there.
        give: Prepares the argument of `work` from the rows of a part; by default the rows themselves.
        on_progress: Gets the good rows of each part.
    """
    for line in parts.read_reports():
        report(line)
    read = functools.partial(_read_part, check, give)
    finish = functools.partial(_finish_part, work)

    def split(pace: Pace) -> Iterator[Sequence[Chunk | Section]]:
        return _split_file(source, parts.consumed, pace, executor)

    if is_elsewhere(executor):
        make_parts(parts, finish, lambda pace: map(read, split(pace)), executor, report, on_progress)
    else:
        make_parts(parts, functools.partial(_read_and_finish, read, finish), split, executor, report, on_progress)


def _split_file(source: Path, taken: int, pace: Pace, executor: Executor) -> Iterator[Sequence[Chunk | Section]]:
    """The rows of each part, after the first `taken`: chunks, or a section for an executor that reads it itself."""
    while True:
        separate = is_separate(executor)  # of one that takes other processes later
        chunks: Iterator[Any] = cut_sections(source, taken) if separate else read_chunks(source, taken)
        while is_separate(executor) == separate:
            if not (some := pace.take_chunks(chunks)):
                return
            taken += sum(map(len, some))
            yield [join_sections(some)] if separate else some


def _read_part(
    check: Check, give: Callable[[pa.RecordBatch], Any] | None, some: Sequence[Chunk | Section]
) -> tuple[Any, Made]:
    """The good rows of a part as `give` returns them, and the part, which has no rows yet."""
    with _collecting_nothing():
        chunks = [chunk for one in some for chunk in (one.read_chunks() if isinstance(one, Section) else [one])]
        read, errors = zip(*in_threads(lambda chunk: _check_rows(chunk, check), chunks), strict=True)
        rows = pa.concat_batches(read)
        left_out = [chunk.take(list(bad)) for chunk, bad in zip(chunks, errors, strict=True) if bad]
        bad = [str(error) for some_errors in errors for error in some_errors.values()]
        part = Part(sum(map(len, chunks)), bad[:MOST_LISTED], len(bad[MOST_LISTED:]))
        made = Made(part, None, left_out, len(rows), len(places_by_kind(kinds_of(rows))))
        return give(rows) if give else rows, made


def _check_rows(chunk: Chunk, check: Check) -> tuple[pa.RecordBatch, dict[int, InputError]]:
    """The good rows of a chunk, and what is wrong with the others by their place in it."""
    errors: dict[int, InputError] = {}
    return read_columns(chunk, errors.__setitem__, check), errors


def _finish_part(work: Callable[[Any], Worked], read: tuple[Any, Made]) -> Made:
    """The part with the rows that `work` makes from the good rows."""
    given, made = read
    with _collecting_nothing():
        rows, tally = work(given)
    return made._replace(rows=rows, part=msgspec.structs.replace(made.part, tally=tally))


def _read_and_finish(
    read: Callable[[A], tuple[Any, Made]], finish: Callable[[tuple[Any, Made]], Made], some: A
) -> Made:
    return finish(read(some))


@contextlib.contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Collections of garbage would walk all that is imported, again and again: a third of the time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def make_parts(
    parts: Parts,
    work: Callable[[A], Made],
    items: Callable[[Pace], Iterable[A]],
    executor: Executor = SERIAL,
    report: Callable[[str], object] = lambda line: None,
    on_progress: Callable[[int], object] = lambda rows: None,
) -> None:
    """Adds a part for each item, in their order.

    Args:
        parts: The finished parts.
        work: Makes a part from an item.
        items: Yields items lazily; the size of each may depend on the pace so far.
        executor: Calls `work`, which must be importable if the executor has other processes.
        report: Gets the error of each row that is left out; of many such rows only the first MOST_LISTED.
        on_progress: Gets the good rows of each part.
    """
    pace = Pace()
    for saved, seconds in _save_parts(parts, work, items(pace), executor):
        saved = saved._replace(part=parts.select_listed(saved.part))
        for line in saved.part.bad_rows:
            report(line)
        parts.add_part(saved)
        on_progress(saved.good)
        pace.adapt(seconds, saved.kinds)


def _save_parts(
    parts: Parts, work: Callable[[A], Made], items: Iterable[A], executor: Executor
) -> Iterator[tuple[Saved, float]]:
    """Each part once its files are there, and the seconds that it took."""
    numbered = enumerate(items, parts.number)
    if not is_elsewhere(executor):
        yield from in_order(executor, functools.partial(_time, _make_part, parts.files, work), numbered)
        return
    made = in_order(executor, functools.partial(_time, work), (item for _, item in numbered), AHEAD)
    for number, (part, seconds) in enumerate(made, parts.number):
        yield parts.files.save(number, part), seconds


def _make_part(files: PartFiles, work: Callable[[A], Made], numbered: tuple[int, A]) -> Saved:
    number, item = numbered
    return files.save(number, work(item))


def _time(function: Callable[..., R], *given: Any) -> tuple[R, float]:
    """The result of a function, and the seconds that it took."""
    begun = time.monotonic()
    return function(*given), time.monotonic() - begun
