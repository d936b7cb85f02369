"""The files of a part: its rows in the form in which they are joined, and the rows left out of it.

The process that made a part saves it, so that all processes at once write lines of JSON and compute digests. The one
process that joins parts then only copies lines, or encodes row groups of Parquet, whose bounds do not depend on parts.

    000007.jsonl       rows of a JSON Lines file, in their final form
    000007.arrow       rows of a Parquet file; in folders of earlier versions also of JSON Lines
    000007.rejected    rows left out, unchanged
"""

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import pyarrow as pa

from lakewright.core_jax.generator import Acceptance
from lakewright.core_jax.rows import column_writer, parquet_writer
from lakewright.core_jax.support import digest_of, replacing
from lakewright.experiments.jobs.resumable.rejects import Rejects


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


class Made(NamedTuple):
    """A part that is not saved yet. left_out: the rows left out, in the form of the input, in pieces.

    good, kinds: how many rows it was made from, and of how many kinds of boards.
    """

    part: Part
    rows: pa.RecordBatch | None = None
    left_out: Sequence[Any] = ()
    good: int = 0
    kinds: int = 1


class Saved(NamedTuple):
    """A part whose files exist, but not its record. digests: by the name of the file. good, kinds: see `Made`."""

    part: Part
    digests: dict[str, str]
    good: int
    kinds: int


@dataclasses.dataclass(frozen=True)
class PartFiles:
    """The place and the form of the files of parts.

    folder: where they are. suffix: `.jsonl` or `.parquet`, the form of the file that is made. schema: its columns.
    rejects: where the rows that are left out go, if anywhere.
    """

    folder: Path
    suffix: str
    schema: pa.Schema
    rejects: Rejects | None = None

    def save(self, number: int, made: Made) -> Saved:
        """Saves the files of a part, in whichever process it was made."""
        rows, writer = self._name_rows(number, ".jsonl" if self.suffix == ".jsonl" else ".arrow"), f"{os.getpid()}."
        self._write_rows(rows, [made.rows] if made.rows is not None else [], writer)
        kept = [self.rejects.save_rows(number, made.left_out, writer)] if self.rejects else []
        return Saved(made.part, {file.name: digest_of(file) for file in (rows, *kept)}, made.good, made.kinds)

    def find_rows(self, number: int) -> Path:
        """The file of the rows of a part."""
        lines, columns = self._name_rows(number, ".jsonl"), self._name_rows(number, ".arrow")
        return lines if self.suffix == ".jsonl" and lines.exists() else columns

    @contextlib.contextmanager
    def joining(self, whole: Path) -> Iterator[Callable[[Path], object]]:
        """Yields a function that appends the rows of a part, from their file, to `whole`, the file of all."""
        if self.suffix == ".jsonl":
            with open(whole, "wb") as lines:
                yield lambda rows: self._copy_lines(rows, lines)
        else:
            with parquet_writer(whole, self.schema) as write:
                yield lambda rows: [write(batch) for batch in _read_columns(rows)]

    def _copy_lines(self, rows: Path, lines: BinaryIO) -> None:
        if rows.suffix == ".arrow":
            columns, rows = rows, rows.with_suffix(".jsonl")
            self._write_rows(rows, _read_columns(columns))
        with open(rows, "rb") as some:
            shutil.copyfileobj(some, lines)

    def _write_rows(self, file: Path, rows: Iterable[pa.RecordBatch], writer: str = "") -> None:
        with contextlib.ExitStack() as stack:
            if file.suffix == ".jsonl":
                write = stack.enter_context(column_writer(file, self.schema, writer))
            else:
                beside = stack.enter_context(replacing(file, writer))
                write = stack.enter_context(pa.ipc.new_file(beside, self.schema)).write
            for batch in rows:
                write(batch)

    def _name_rows(self, number: int, suffix: str) -> Path:
        return self.folder / f"{number:06d}{suffix}"


def _read_columns(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(file)) as mapped, pa.ipc.open_file(mapped) as part:
        for place in range(part.num_record_batches):
            yield part.get_batch(place)
