"""Writers of files of rows: a file appears whole or not at all, and its layout does not depend on the batches."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.rows.chunks import ending
from lakewright.core_jax.rows.columns import columns_of
from lakewright.core_jax.rows.json_lines import encode_lines
from lakewright.core_jax.rows.row import SCHEMA, Row
from lakewright.core_jax.support.atomic_files import replacing
from lakewright.core_jax.support.threads import in_threads

ROW_GROUP = 1 << 14  # rows of a row group of Parquet, except the last
AT_ONCE = 1 << 12  # rows turned into lines by one core
STRUCTS = 512  # turned into columns at once


@contextlib.contextmanager
def column_writer(
    path: str | Path, schema: pa.Schema = SCHEMA, writer: str = ""
) -> Iterator[Callable[[pa.RecordBatch], object]]:
    """Yields a function that appends columns; the file takes its place, complete, when the block succeeds.

    writer: see `replacing`.
    """
    form = ending(path)
    with replacing(path, writer) as beside:
        if form == ".jsonl":
            with open(beside, "wb") as lines:
                yield lambda batch: lines.writelines(in_threads(encode_lines, _cut_pieces(batch)))
        else:
            with parquet_writer(beside, schema) as write:
                yield write


@contextlib.contextmanager
def parquet_writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], object]]:
    """Like `column_writer`, straight into a file of Parquet at `path`."""
    with pq.ParquetWriter(path, schema) as parquet:
        groups = RowGroups(parquet, schema)
        yield groups.add
        groups.write_rest()


def _cut_pieces(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [batch.slice(first, AT_ONCE) for first in range(0, len(batch), AT_ONCE)]


class RowGroups:
    """Cuts what comes into row groups of ROW_GROUP rows."""

    def __init__(self, parquet: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._parquet, self._schema = parquet, schema
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Writes each row group when it is full."""
        while self._rows + len(batch) >= ROW_GROUP:
            missing = ROW_GROUP - self._rows
            self._waiting.append(batch.slice(0, missing))
            self.write_rest()
            batch = batch.slice(missing)
        self._waiting.append(batch)
        self._rows += len(batch)

    def write_rest(self) -> None:
        """Writes what waits as the last row group."""
        # In one piece, as the pages of a column end where its pieces do.
        table = pa.Table.from_batches(self._waiting, self._schema).combine_chunks()
        if len(table):
            self._parquet.write_table(table, row_group_size=ROW_GROUP)
        self._waiting, self._rows = [], 0


@contextlib.contextmanager
def row_writer(path: str | Path, schema: pa.Schema = SCHEMA) -> Iterator[Callable[[Iterable[msgspec.Struct]], None]]:
    """Yields a function that appends rows, as `column_writer` does columns."""
    with column_writer(path, schema) as write:

        def write_rows(rows: Iterable[msgspec.Struct]) -> None:
            iterator = iter(rows)
            while some := list(itertools.islice(iterator, STRUCTS)):
                write(columns_of(some, schema))

        yield write_rows


def write_rows(path: str | Path, rows: Iterable[Row], schema: pa.Schema = SCHEMA) -> None:
    """Writes the fields of rows that `schema` names to a `.jsonl` or `.parquet` file, whole or not at all."""
    with row_writer(path, schema) as write:
        write(rows)
