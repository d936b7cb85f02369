"""Long files, made in parts: a finished part is saved, so a command that was killed resumes after it.

Until OUT is whole there is a folder next to it, .OUT.parts. Its job.json says what is made, and each part is a file of
rows with a record, such as 000000.arrow and 000000.json; the record is written last and commits the part. Then its rows
are joined to those before, while later parts are made. The length of a part depends on the clock; the layout of OUT
does not.
"""

import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import Acceptance, pool_acceptance, versions
from lakewright.core_jax.rows import ending
from lakewright.core_jax.support import (
    check_digest,
    listed,
    locked,
    name_errors,
    read_config,
    replace_file,
    write_atomically,
)
from lakewright.experiments.jobs.resumable.claims import describe_difference
from lakewright.experiments.jobs.resumable.overwriting import refuse_overwriting, refuse_within
from lakewright.experiments.jobs.resumable.part_files import Part, PartFiles, Saved
from lakewright.experiments.jobs.resumable.rejects import Rejects

MOST_LISTED = 20  # rows left out of which a message each says why; beyond them they are counted
S = TypeVar("S", bound=msgspec.Struct)


class InputFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of an input file when the work on it began."""

    path: str
    bytes: int
    modified: str


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """job.json: the properties that all parts of one file share."""

    command: str
    inputs: dict[str, InputFile]
    options: dict[str, Any]
    versions: dict[str, str]


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

    files: the files of each. whole_file: where they are joined. number: how many there are. consumed: how many rows of
    the input they settle. tally: their counts, `bad_rows` among them, and `unlisted`: how many of these are only
    counted. acceptance: the acceptance of all parts.

    Args:
        out: the file to make.
        files: the places and the format of its parts.
        stack: closes open files at the end.
    """

    def __init__(self, out: Path, files: PartFiles, stack: contextlib.ExitStack) -> None:
        self._out, self.whole_file, self._stack = out, files.folder / f"whole{out.suffix}", stack
        self.files = files
        self.folder = files.folder
        self.whole = False
        self.number = self.consumed = 0
        self.tally: Counter[str] = Counter()
        self.acceptance: list[Acceptance] = []
        # Records are written in order, so the first that is missing ends the list, whatever files follow it.
        while self._record_file(self.number).exists():
            self._count_part(_read_record(self._record_file(self.number), Part))
        self._joined, self._found = 0, self.number
        self._append: Callable[[Path], object] | None = None

    def read_reports(self) -> Iterator[str]:
        """The reports of all parts, most of them about rows left out."""
        for number in range(self.number):
            part = _read_record(self._record_file(number), Part)
            yield from (*part.bad_rows, *part.notes)

    def select_listed(self, part: Part) -> Part:
        """The part with reports of those bad rows only that are still listed: the first few of all parts."""
        room = max(MOST_LISTED - self.tally["bad_rows"], 0)
        unlisted = part.unlisted + max(len(part.bad_rows) - room, 0)
        return msgspec.structs.replace(part, bad_rows=part.bad_rows[:room], unlisted=unlisted)

    def add_part(self, saved: Saved) -> None:
        """Adds the next part, whose files `files` has saved."""
        record = self._record_file(self.number)
        # The record commits the part: its files are on the disk by now, and their digests are listed with it.
        with listed(record, *(self.folder / name for name in saved.digests), known=saved.digests):
            write_atomically(record, msgspec.json.encode(saved.part))
        self._count_part(saved.part)
        self._join_parts()

    def assemble(self, finish: Callable[[], object] = lambda: None) -> None:
        """Puts the file of all parts in its place, where it appears whole; after `finish` they are not needed."""
        self._join_parts()
        with name_errors(self.whole_file):
            self._stack.close()
        if self.files.rejects:  # first, so that where the output is there, what is missing in it is there too
            self.files.rejects.assemble(self.number)
        replace_file(self.whole_file, self._out)
        finish()
        # A folder without a job belongs to nobody: after a kill from here on, the next command empties it.
        _job_file(self.folder).unlink()
        self.whole = True

    def _join_parts(self) -> None:
        """Appends the parts that are not in the file of all yet. After a kill it is made again, from all parts."""
        with name_errors(self.whole_file):
            if self._append is None:
                self._append = self._stack.enter_context(self.files.joining(self.whole_file))
            for number in range(self._joined, self.number):
                rows = self.files.find_rows(number)
                if number < self._found:  # a part of this process has just been written
                    check_digest(rows)
                self._append(rows)
        self._joined = self.number

    def _count_part(self, part: Part) -> None:
        self.number += 1
        self.consumed += part.consumed
        left_out = len(part.bad_rows) + part.unlisted
        self.tally.update(part.tally, bad_rows=left_out, unlisted=part.unlisted)
        self.acceptance = pool_acceptance([*self.acceptance, *part.acceptance])

    def _record_file(self, number: int) -> Path:
        return self.folder / f"{number:06d}.json"


@contextlib.contextmanager
def parts_of(out: Path, job: Job, schema: pa.Schema, rejects: Path | None = None) -> Iterator[Parts]:
    """Yields the parts of `out` that `job` finished before. They are removed once the file is complete.

    Args:
        out: The file to make.
        job: The inputs and settings that it is made from.
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
        left_out = Rejects(rejects, source, folder) if rejects else None
        stack = contextlib.ExitStack()
        parts = Parts(out, PartFiles(folder, out.suffix, schema, left_out), stack)
        try:
            yield parts
        finally:
            with name_errors(parts.whole_file):  # closing writes what waits, which a full disk refuses again
                stack.__exit__(*sys.exc_info())
            if parts.whole or not parts.consumed:
                shutil.rmtree(folder)
            else:  # it is made again, and a full disk needs the room
                parts.whole_file.unlink(missing_ok=True)


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
    # No part would be lost: the folder is new, or its job ended or never finished a part.
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
