"""Chunks of consecutive rows of a file, not decoded yet: cheap to read and to skip.

A file that several processes read is cut into sections: one process says where each begins, another reads its chunks.
"""

import codecs
import contextlib
import dataclasses
import io
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support.digests import check_digest
from lakewright.core_jax.support.input_checks import ending as ending
from lakewright.core_jax.support.input_checks import first_repeated, refuse_pipe

CHUNK_BYTES, CHUNK_ROWS = 1 << 20, 4096  # read at once, and never less than one row


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Some rows of a file.

    first: the number of the first line, or row of Parquet, from 1. Good and bad ones count, blank lines too.
    """

    path: Path
    first: int
    raw: list[bytes] | pa.RecordBatch

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def nbytes(self) -> int:
        """The size of the rows in memory."""
        return sum(map(len, self.raw)) if isinstance(self.raw, list) else self.raw.nbytes

    def place(self, row: int) -> str:
        """File and number of a row, counted from 0 in this chunk, for a message."""
        return row_place(self.path, self.first + row)

    def take(self, rows: Sequence[int]) -> list[bytes] | pa.RecordBatch:
        """The rows at these places, counted from 0 in this chunk, in the form of the file."""
        return [self.raw[row] for row in rows] if isinstance(self.raw, list) else self.raw.take(pa.array(rows))


@dataclasses.dataclass(frozen=True)
class Section:
    """Some rows of a file that were not read.

    first: see `Chunk`. rows: how many. begin: where the first line begins, in bytes. nbytes: their size, which is
    estimated for Parquet.
    """

    path: Path
    first: int
    rows: int
    begin: int
    nbytes: int

    def __len__(self) -> int:
        return self.rows

    def read_chunks(self) -> Iterator[Chunk]:
        """Yields the rows. Raises InputError if the file cannot be read, or does not have them any more."""
        if ending(self.path) == ".parquet":
            chunks = _parquet_chunks(self.path, self.first - 1, CHUNK_ROWS, self.first - 1 + self.rows)
        else:
            chunks = _jsonl_section(self)
        read = 0
        for chunk in chunks:
            yield chunk
            read += len(chunk)
        if read != self.rows:
            raise InputError(f"{self.path}: was changed while it was read; run the command again")


def join_sections(sections: Sequence[Section]) -> Section:
    """The section of consecutive sections."""
    rows, nbytes = (sum(getattr(section, name) for section in sections) for name in ("rows", "nbytes"))
    return dataclasses.replace(sections[0], rows=rows, nbytes=nbytes)


def row_place(path: Path, number: int) -> str:
    """A file and the number of a line or row in it, from 1, for a message."""
    return f"{path}: row {number}" if path.suffix == ".parquet" else f"{path}:{number}"


def read_chunks(path: str | Path, skip: int = 0, *, size: int = 0, rows: int = 0) -> Iterator[Chunk]:
    """Yields what follows the first `skip` rows of a file. Raises InputError if it was changed or cannot be read.

    Args:
        path: the file.
        skip: rows before the first chunk.
        size, rows: bytes of JSON lines, and rows of Parquet, read at once; by default CHUNK_BYTES and CHUNK_ROWS.
    """
    path = _check_file(path)
    if ending(path) == ".parquet":
        return _parquet_chunks(path, skip, rows or CHUNK_ROWS)
    return _jsonl_chunks(path, skip, size or CHUNK_BYTES)


def cut_sections(path: str | Path, skip: int = 0) -> Iterator[Section]:
    """Yields sections with the rows that `read_chunks` reads; lines are counted, and nothing is decoded.

    path, skip: as in `read_chunks`, which raises the same errors.
    """
    path = _check_file(path)
    return (_cut_groups if ending(path) == ".parquet" else _cut_lines)(path, skip)


def _check_file(path: str | Path) -> Path:
    refuse_pipe(path := Path(path))
    check_digest(path)
    return path


@contextlib.contextmanager
def _open_lines(path: Path) -> Iterator[BinaryIO]:
    try:
        with open(path, "rb") as lines:
            yield lines
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error


def _jsonl_chunks(path: Path, skip: int, size: int) -> Iterator[Chunk]:
    with _open_lines(path) as lines:
        passed = sum(1 for _ in itertools.islice(lines, skip))
        yield from _read_lines(path, passed + 1, lines, size)


def _jsonl_section(section: Section) -> Iterator[Chunk]:
    with _open_lines(section.path) as lines:
        lines.seek(section.begin)
        yield from _read_lines(section.path, section.first, io.BytesIO(lines.read(section.nbytes)), CHUNK_BYTES)


def _read_lines(path: Path, first: int, lines: BinaryIO, size: int) -> Iterator[Chunk]:
    while raw := lines.readlines(size):
        if first == 1:
            raw[0] = raw[0].removeprefix(codecs.BOM_UTF8)
        yield Chunk(path, first, raw)
        first += len(raw)


def _cut_lines(path: Path, skip: int) -> Iterator[Section]:
    first, begin = 1, 0
    with _open_lines(path) as lines:
        while block := lines.read(CHUNK_BYTES):
            tail = b"" if block.endswith(b"\n") else lines.readline()
            rows, size = block.count(b"\n") + (not block.endswith(b"\n")), len(block) + len(tail)
            passed = min(max(skip + 1 - first, 0), rows)
            if passed < rows:
                rest = len((block + tail).split(b"\n", passed)[passed]) if passed else size
                yield Section(path, first + passed, rows - passed, begin + size - rest, rest)
            first, begin = first + rows, begin + size


@contextlib.contextmanager
def _open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    with parquet_errors(path), pq.ParquetFile(path) as parquet:
        if (twice := first_repeated(parquet.schema_arrow.names)) is not None:
            raise InputError(f"{path}: has two columns named {twice!r:.60}; keep one of them")
        yield parquet


def _list_groups(parquet: pq.ParquetFile, skip: int, end: int) -> Iterator[tuple[int, int]]:
    """The row groups that have rows between two, and the place of the first row of each."""
    begin = 0
    for group in range(parquet.num_row_groups):
        rows = parquet.metadata.row_group(group).num_rows
        if begin + rows > skip and begin < end:
            yield group, begin
        begin += rows


def _parquet_chunks(path: Path, skip: int, at_once: int, end: int = sys.maxsize) -> Iterator[Chunk]:
    with _open_parquet(path) as parquet:
        # Row groups before the first wanted row are not even decoded, so a resumed command starts quickly.
        for group, first in _list_groups(parquet, skip, end):
            for batch in parquet.iter_batches(at_once, [group]):
                if first >= end:
                    break
                # A chunk's number counts from the rows that are skipped, so a message names the row of the file.
                passed = max(skip - first, 0)
                wanted = batch.slice(passed, end - first - passed)
                if len(wanted):
                    yield Chunk(path, first + passed + 1, wanted)
                first += len(batch)


def _cut_groups(path: Path, skip: int) -> Iterator[Section]:
    with _open_parquet(path) as parquet:
        for group, begin in _list_groups(parquet, skip, sys.maxsize):
            found = parquet.metadata.row_group(group)
            end = begin + found.num_rows
            for first in range(max(begin, skip), end, CHUNK_ROWS):
                rows = min(CHUNK_ROWS, end - first)
                yield Section(path, first + 1, rows, 0, found.total_byte_size * rows // found.num_rows)


@contextlib.contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Turns errors of Arrow into an InputError of one line."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]}); check it") from error
