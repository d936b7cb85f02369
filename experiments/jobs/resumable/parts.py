"""Long files, made in parts: a finished part is saved, so a command that was killed resumes after it.

Until OUT is whole there is a folder next to it, .OUT.parts. Its job.json says what is made, and each part is a file of
columns with a record, such as 000000.arrow and 000000.json; the record is written last and commits the part. The
length of a part depends on the clock. The layout of OUT does not: OUT is written from all parts at the end.
"""

import contextlib
import functools
import gc
import os
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import Acceptance, pool_acceptance, versions
from lakewright.core_jax.rows import Chunk, column_writer, ending, kinds_of, places_by_kind, read_chunks, read_columns
from lakewright.core_jax.support import (
    check_digest,
    in_threads,
    listed,
    locked,
    read_config,
    rename,
    replacing,
    write_atomically,
)
from lakewright.experiments.jobs.executors.executor import SERIAL, Executor, in_order
from lakewright.experiments.jobs.resumable.claims import describe_difference
from lakewright.experiments.jobs.resumable.overwriting import refuse_overwriting, refuse_within
from lakewright.experiments.jobs.resumable.rejects import Rejects

# A part takes about SECONDS of work, as a kill loses at most one part. It begins with FEWEST_ROWS. SOME_ROWS are enough
# for few kinds of boards. Many kinds need ROWS_A_KIND each, so that the solver's blocks are full, up to MOST_ROWS and
# MOST_BYTES, which bound the memory.
SECONDS = 10.0
FEWEST_ROWS, SOME_ROWS, ROWS_A_KIND, MOST_ROWS, MOST_BYTES = 512, 1 << 15, 1 << 11, 1 << 16, 1 << 25
MOST_LISTED = 20  # rows left out of which a message each says why; beyond them they are counted
AHEAD = 64  # parts that an executor has at a time: they lie in memory
T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Worked: TypeAlias = tuple[pa.RecordBatch, dict[str, int]]


class InputFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of an input file when the work on it began."""

    path: str
    bytes: int
    modified: str


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """job.json: what parts must have in common to be parts of one file."""

    command: str
    inputs: dict[str, InputFile]
    options: dict[str, Any]
    versions: dict[str, str]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of a finished part.

    consumed: how many rows of the input it settles, good and bad. bad_rows: what was reported about those left out.
    unlisted: how many more were left out. notes: what else was reported. tally: counts for the summary. acceptance: of
    generated boards.
    """

    consumed: int
    bad_rows: list[str] = []
    unlisted: int = 0
    notes: list[str] = []
    tally: dict[str, int] = {}
    acceptance: list[Acceptance] = []


def job_of(command: str, inputs: dict[str, Path], options: dict[str, Any]) -> Job:
    """The job of a command. Raises InputError if an input is not there."""
    return Job(command, {name: _input_file(path) for name, path in inputs.items()}, options, versions())


def _input_file(path: Path) -> InputFile:
    try:
        found = os.stat(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    modified = datetime.fromtimestamp(found.st_mtime_ns // 10**9, UTC).replace(tzinfo=None).isoformat()
    return InputFile(os.path.abspath(path), found.st_size, f"{modified}.{found.st_mtime_ns % 10**9:09d}")


class Parts:
    """The finished parts of a file that is not whole yet.

    consumed: how many rows of the input they settle. tally: their counts, `bad_rows` among them, and `unlisted`: how
    many of these are only counted. acceptance: for all.

    Args:
        out: the file that is made.
        folder: for its parts.
        schema: for its rows.
        rejects: where the rows that are left out go, if anywhere.
    """

    def __init__(self, out: Path, folder: Path, schema: pa.Schema, rejects: Rejects | None = None) -> None:
        self._out, self._schema = out, schema
        self.rejects = rejects
        self.folder = folder
        self.whole = False
        self.number = self.consumed = 0
        self.tally: Counter[str] = Counter()
        self.acceptance: list[Acceptance] = []
        while self._record_file(self.number).exists():
            self._count_part(_read_record(self._record_file(self.number), Part))

    def read_reports(self) -> Iterator[str]:
        """The reports of all parts, most of them about rows left out."""
        for number in range(self.number):
            part = _read_record(self._record_file(number), Part)
            yield from (*part.bad_rows, *part.notes)

    def select_listed(self, problems: Sequence[str]) -> list[str]:
        """The problems with rows that are still listed: only the first few of all parts."""
        return list(problems[: max(MOST_LISTED - self.tally["bad_rows"], 0)])

    def add_part(self, part: Part, rows: pa.RecordBatch | None = None) -> None:
        """Saves a finished part and its rows, if it has any."""
        rows_file, record = self._rows_file(self.number), self._record_file(self.number)
        kept = [self.rejects.part_file(self.number)] if self.rejects else []
        with listed(rows_file, record, *(file for file in kept if file.exists())):
            with replacing(rows_file) as beside, pa.ipc.new_file(beside, self._schema) as file:
                if rows is not None:
                    file.write(rows)
            write_atomically(record, msgspec.json.encode(part))
        self._count_part(part)

    def assemble(self, finish: Callable[[], object] = lambda: None) -> None:
        """Writes all parts into the file, which is there at once and whole; after `finish` they are not needed."""
        whole = self.folder / f"whole{self._out.suffix}"
        with column_writer(whole, self._schema) as write:
            for number in range(self.number):
                check_digest(self._rows_file(number))
                with pa.memory_map(str(self._rows_file(number))) as file, pa.ipc.open_file(file) as part:
                    for place in range(part.num_record_batches):
                        write(part.get_batch(place))
        if self.rejects:  # first, so that where the output is there, what is missing in it is there too
            self.rejects.assemble(self.number)
        rename(whole, self._out)
        finish()
        _job_file(self.folder).unlink()
        self.whole = True

    def _count_part(self, part: Part) -> None:
        self.number += 1
        self.consumed += part.consumed
        left_out = len(part.bad_rows) + part.unlisted
        self.tally.update(part.tally, bad_rows=left_out, unlisted=part.unlisted)
        self.acceptance = pool_acceptance([*self.acceptance, *part.acceptance])

    def _rows_file(self, number: int) -> Path:
        return self.folder / f"{number:06d}.arrow"

    def _record_file(self, number: int) -> Path:
        return self.folder / f"{number:06d}.json"


@contextlib.contextmanager
def parts_of(out: Path, job: Job, schema: pa.Schema, rejects: Path | None = None) -> Iterator[Parts]:
    """Yields the parts of `out` that `job` finished before. They are removed once the file is complete.

    Args:
        out: The file that is made.
        job: What it is made from.
        schema: Its columns.
        rejects: A file for the rows of the job's `input` that are left out, unchanged; without it they are lost.

    Raises InputError if another process writes `out`, if finished parts of another job would be lost, or if
    a file to write is one that is read.
    """
    ending(out)
    if out.is_dir():
        raise InputError(f"{out}: is a folder; choose a file")
    folder = out.with_name(f".{out.name}.parts")
    inputs = [(f"the {name}", Path(file.path)) for name, file in job.inputs.items()]
    outputs = [("--out", out), *([("--rejects", rejects)] if rejects else [])]
    refuse_overwriting(outputs, inputs)
    refuse_within(folder, inputs)
    with locked(folder, f"{out}: another process is writing it; wait for it, or choose another --out"):
        _claim_folder(out, folder, job)
        source = Path(job.inputs["input"].path) if rejects else out
        parts = Parts(out, folder, schema, Rejects(rejects, source, folder) if rejects else None)
        try:
            yield parts
        finally:
            if parts.whole or not parts.consumed:
                shutil.rmtree(folder)


def work_in_parts(
    source: Path,
    parts: Parts,
    check: Callable[[pa.RecordBatch], Mapping[int, str | InputError]],
    work: Callable[[Any], Worked],
    report: Callable[[str], object],
    executor: Executor = SERIAL,
    give: Callable[[pa.RecordBatch], Any] = lambda rows: rows,
    on_progress: Callable[[int], object] = lambda rows: None,
) -> None:
    """Processes the rows of a file that `parts` does not cover yet, and adds their results part by part.

    Args:
        source: The file.
        parts: Its finished parts.
        check: What it says of a row, by its place, keeps the row out.
        work: What makes the rows of a part, and counts, from what `give` returned for it.
        report: Gets what is wrong with a row that is left out, once more for the parts finished before; of many such
            rows only the first MOST_LISTED.
        executor: Calls `work`; where that is in another process, `work` is a function that can be imported.
        give: What `work` is given for the rows of a part.
        on_progress: Gets the good rows of each part.
    """
    for line in parts.read_reports():
        report(line)
    pace, chunks = Pace(), read_chunks(source, parts.consumed)
    taken: deque[Taken] = deque()  # what `work` is at

    def batches() -> Iterator[Any]:
        while some := pace.take_chunks(chunks):
            read, errors = zip(*in_threads(lambda chunk: _check_rows(chunk, check), some), strict=True)
            rows = pa.concat_batches(read)
            taken.append(Taken(some, errors, len(rows), len(places_by_kind(kinds_of(rows)))))
            yield give(rows)

    gc.freeze()  # collections would walk all that is imported, again and again: a third of the time
    try:
        for (made, tally), seconds in in_order(executor, functools.partial(_time_work, work), batches(), AHEAD):
            part = taken.popleft()
            bad = [str(error) for some in part.errors for error in some.values()]
            listed = parts.select_listed(bad)
            for line in listed:
                report(line)
            if parts.rejects:
                parts.rejects.save_rows(parts.number, zip(part.chunks, map(list, part.errors), strict=True))
            parts.add_part(Part(sum(map(len, part.chunks)), listed, len(bad) - len(listed), tally=tally), made)
            on_progress(part.rows)
            pace.adapt(seconds, part.kinds)
    finally:
        gc.unfreeze()


class Taken(NamedTuple):
    """Chunks of the source that are worked on. errors: for each, by place. rows: good ones, by kind."""

    chunks: list[Chunk]
    errors: tuple[dict[int, InputError], ...]
    rows: int
    kinds: int


def _time_work(work: Callable[[Any], T], given: Any) -> tuple[T, float]:
    """The result of `work`, and the seconds that it took."""
    begun = time.monotonic()
    made = work(given)
    return made, time.monotonic() - begun


def _check_rows(
    chunk: Chunk, check: Callable[[pa.RecordBatch], Mapping[int, str | InputError]]
) -> tuple[pa.RecordBatch, dict[int, InputError]]:
    """The good rows of a chunk, and what is wrong with the others by their place in it."""
    errors: dict[int, InputError] = {}
    return read_columns(chunk, errors.__setitem__, check), errors


class Pace:
    """The number of rows of the next part."""

    def __init__(self) -> None:
        self.rows = FEWEST_ROWS

    def take_chunks(self, chunks: Iterator[Chunk]) -> list[Chunk]:
        """The next part, or nothing at the end."""
        taken: list[Chunk] = []
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


def _claim_folder(out: Path, folder: Path, job: Job) -> None:
    """Makes `folder` the folder of `job`; parts of the same job remain."""
    if _job_file(folder).exists():
        there = _read_record(_job_file(folder), Job)
        if there == job:
            return
        if any(_read_record(record, Part).consumed for record in folder.glob("[0-9]*.json")):
            raise InputError(
                f"{out}: an unfinished `lakewright {there.command}` is saved in {folder}, with another input or other "
                f"options ({describe_difference(there, job)}); repeat that command, or remove the folder"
            )
    for file in folder.iterdir():
        file.unlink()
    try:
        with listed(_job_file(folder)):
            write_atomically(_job_file(folder), msgspec.json.encode(job))
    except OSError:  # a folder without parts is left to no job
        _job_file(folder).unlink(missing_ok=True)
        raise


def _job_file(folder: Path) -> Path:
    return folder / "job.json"


def _read_record(path: Path, kind: type[S]) -> S:
    try:
        return read_config(path, kind)
    except InputError as error:
        raise InputError(f"{error}; or remove {path.parent} to start again") from error
