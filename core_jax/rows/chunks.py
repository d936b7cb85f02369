"""Chunks of consecutive rows of a file, not decoded yet: cheap to read and to skip."""

import codecs
import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support.decoding import first_repeated, refuse_pipe
from lakewright.core_jax.support.digests import check_digest

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
    path = Path(path)
    refuse_pipe(path)
    check_digest(path)
    if ending(path) == ".parquet":
        return _parquet_chunks(path, skip, rows or CHUNK_ROWS)
    return _jsonl_chunks(path, skip, size or CHUNK_BYTES)


def ending(path: str | Path) -> str:
    """`.jsonl` or `.parquet`; raises InputError on any other ending."""
    form = Path(path).suffix
    if form not in (".jsonl", ".parquet"):
        raise InputError(f"{path}: the ending {form or '(none)'} is not a known format; use .jsonl or .parquet")
    return form


def _jsonl_chunks(path: Path, skip: int, size: int) -> Iterator[Chunk]:
    try:
        with open(path, "rb") as lines:
            first = 1 + sum(1 for _ in itertools.islice(lines, skip))
            while raw := lines.readlines(size):
                if first == 1:
                    raw[0] = raw[0].removeprefix(codecs.BOM_UTF8)
                yield Chunk(path, first, raw)
                first += len(raw)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error


def _parquet_chunks(path: Path, skip: int, at_once: int) -> Iterator[Chunk]:
    with parquet_errors(path), pq.ParquetFile(path) as parquet:
        if (twice := first_repeated(parquet.schema_arrow.names)) is not None:
            raise InputError(f"{path}: has two columns {twice!r:.60}; keep one of them")
        begin = 0  # of a row group
        for group in range(parquet.num_row_groups):
            first, rows = begin, parquet.metadata.row_group(group).num_rows
            begin += rows
            # Row groups before the first wanted row are not even decoded, so a resumed command starts quickly.
            if begin <= skip:
                continue
            for batch in parquet.iter_batches(at_once, [group]):
                # A chunk's number counts from the rows that are skipped, so a message names the row of the file.
                wanted = batch.slice(max(skip - first, 0))
                if len(wanted):
                    yield Chunk(path, first + len(batch) - len(wanted) + 1, wanted)
                first += len(batch)


@contextlib.contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Turns errors of Arrow into an InputError of one line."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]}); check it") from error
