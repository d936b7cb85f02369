"""Readers of files of rows, by columns or row by row; bad rows are reported with line, field, value and remedy."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows.chunks import Chunk, parquet_errors, read_chunks, row_place
from lakewright.core_jax.rows.column_checks import good_rows
from lakewright.core_jax.rows.columns import columns_of, records_of
from lakewright.core_jax.rows.json_lines import parse_lines
from lakewright.core_jax.rows.row import BENCHMARK_COLUMNS, BENCHMARK_FIELDS, INDEX_COLUMN, SCHEMA, Row
from lakewright.core_jax.support.input_checks import convert, decode_line, find_repeated_key

FEW = 32  # rows among which the bad ones are looked for one by one
R = TypeVar("R", bound=msgspec.Struct)
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_READ = pa.schema([*SCHEMA, *BENCHMARK_FIELDS])


def read_columns(
    chunk: Chunk,
    on_error: Callable[[int, InputError], object],
    check: Callable[[pa.RecordBatch], Mapping[int, str | InputError]] = lambda batch: {},
) -> pa.RecordBatch:
    """The good rows of a chunk as columns of SCHEMA.

    A bad row, or one of which `check` has something to say, is left out and reported to `on_error`: its place in the
    chunk, and the error with its line or number. `check` gets columns and returns what is wrong by the place of the
    row in them; an InputError if it is another file that is wrong.
    """
    errors: dict[int, InputError] = {}
    pieces = list(_read_pieces(chunk, 0, len(chunk), errors))
    columns = pa.concat_batches([rows for _, rows in pieces]) if pieces else columns_of([], SCHEMA)
    refused = check(columns) if pieces else {}
    for row, problem in refused.items():
        place = int(np.concatenate([places for places, _ in pieces])[row])
        errors[place] = problem if isinstance(problem, InputError) else InputError(f"{chunk.place(place)}: {problem}")
    # Errors come in the order of the file, from both ways of reading, so that a repeated command reports the same.
    for place in sorted(errors):
        on_error(place, errors[place])
    return columns.filter(pa.array(~np.isin(np.arange(len(columns)), list(refused)))) if refused else columns


def _read_pieces(
    chunk: Chunk, begin: int, end: int, errors: dict[int, InputError]
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Yields the good rows of a part of a chunk, in order: their places in the chunk, and their columns.

    If a line keeps others from being read at once, ever smaller parts are tried.

    Args:
        chunk: the rows.
        begin, end: the part of the chunk to read.
        errors: errors by place; new errors are added.
    """
    # Columns are read many times as fast as rows, but one bad line prevents it for its part. So the part is halved
    # until only few rows are left that must be read one by one.
    batch = _read_at_once(chunk, begin, end)
    if batch is None and end - begin > FEW:
        middle = (begin + end) // 2
        yield from _read_pieces(chunk, begin, middle, errors)
        yield from _read_pieces(chunk, middle, end, errors)
        return
    good = np.zeros(end - begin, bool) if batch is None else good_rows(batch)
    if batch is not None and good.all():
        yield np.arange(begin, end), batch
        return
    # `good_rows` only says that a row is bad; the slow reader names field, value and remedy.
    runs = np.flatnonzero(np.diff(good)) + 1  # where good rows end or begin
    for first, last in zip([0, *runs], [*runs, end - begin], strict=True):
        if batch is not None and good[first]:
            yield np.arange(begin + first, begin + last), batch.slice(first, last - first)
        else:
            yield from _read_one_by_one(chunk, range(begin + first, begin + last), errors)


def _read_at_once(chunk: Chunk, begin: int, end: int) -> pa.RecordBatch | None:
    """A part of a chunk as columns, not checked yet; None if a row of it has to be read alone."""
    if isinstance(chunk.raw, list):
        found = parse_lines(chunk.raw[begin:end], _READ)
        return None if found is None else found.select(SCHEMA.names)
    some = chunk.raw.slice(begin, end - begin)
    if not all(_is_ignored(name, Row) for name in some.schema.names if name not in SCHEMA.names):
        return None
    if not all(
        _means_the_same(some[field.name].type, field.type) for field in SCHEMA if field.name in some.schema.names
    ):
        return None
    try:
        columns = [
            _fit_column(some[field.name], field.type)
            if field.name in some.schema.names
            else pa.nulls(len(some), field.type)
            for field in SCHEMA
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        batch.validate(full=True)
    except pa.ArrowException:
        return None
    return batch


def _fit_column(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The column in another type, with null for NaN, by which pandas writes what is missing.

    Raises ArrowInvalid if a value has no equivalent, as 7.5 for a whole number.
    """
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    makes_bools = pa.types.is_boolean(wanted) and not pa.types.is_boolean(column.type)
    if makes_bools and not pc.all(pc.is_in(column, pa.array([0, 1, None], column.type))).as_py():
        raise pa.ArrowInvalid("a number that is neither 0 nor 1")  # of which a cast would make True
    return column.cast(wanted)


def _means_the_same(there: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if all values of one type that fit into another mean the same in it."""
    if pa.types.is_list(wanted):
        lists = pa.types.is_list(there) or pa.types.is_large_list(there) or pa.types.is_fixed_size_list(there)
        return lists and _means_the_same(there.value_type, wanted.value_type)
    if pa.types.is_string(wanted):
        return pa.types.is_string(there) or pa.types.is_large_string(there)
    if pa.types.is_integer(wanted) and pa.types.is_decimal(there):
        return True
    if pa.types.is_integer(wanted) or (pa.types.is_boolean(wanted) and not pa.types.is_boolean(there)):
        return pa.types.is_integer(there) or pa.types.is_floating(there)  # what is not whole is refused
    return there == wanted


def _is_ignored(name: str, kind: type[msgspec.Struct]) -> bool:
    """Whether a column is not read: the index of a table of pandas, or, of rows, what a benchmark adds."""
    return INDEX_COLUMN.fullmatch(name) is not None or (issubclass(kind, Row) and name in BENCHMARK_COLUMNS)


def _read_one_by_one(
    chunk: Chunk, places: range, errors: dict[int, InputError]
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    part = Chunk(chunk.path, chunk.first + places.start, chunk.raw[places.start : places.stop])
    for place, row in enumerate(_decode_rows(part, Row), places.start):
        if isinstance(row, InputError):
            errors[place] = row
        elif row is not None:
            yield np.array([place]), columns_of([row], SCHEMA)


def read_rows(
    path: str | Path,
    kind: type[R],
    on_error: Callable[[InputError], None],
    check: Callable[[R], object] = lambda row: None,
) -> Iterator[list[R]]:
    """Yields the rows of a `.jsonl` or `.parquet` file in chunks. Raises InputError if the file cannot be read.

    Args:
        path: the file.
        kind: the type of the rows.
        on_error: gets an error with line or number (from 1) for each bad row, which is left out.
        check: raises ValueError on further rows to leave out.
    """
    for chunk in read_chunks(path):
        yield list(decode(chunk, kind, on_error, check))


def decode(
    chunk: Chunk,
    kind: type[R],
    on_error: Callable[[InputError], None],
    check: Callable[[R], object] = lambda row: None,
) -> Iterator[R]:
    """Yields the good rows of a chunk.

    Args: chunk: the rows; kind, on_error, check: see `read_rows`.
    """
    for number, row in decode_numbered(chunk, kind):
        if isinstance(row, InputError):
            on_error(row)
            continue
        try:
            check(row)
        except ValueError as error:
            on_error(InputError(f"{row_place(chunk.path, number)}: {error}"))
        else:
            yield row


def decode_numbered(chunk: Chunk, kind: type[R]) -> Iterator[tuple[int, R | InputError]]:
    """Yields each row of a chunk, or what is wrong with it, after its number in the file, from 1; no blank lines."""
    for number, row in enumerate(_decode_rows(chunk, kind), chunk.first):
        if row is not None:
            yield number, row


def _decode_rows(chunk: Chunk, kind: type[R]) -> Iterator[R | InputError | None]:
    """Each row of a chunk, or what is wrong with it; None for a blank line."""
    quickly: Callable[[Any], R] = functools.partial(msgspec.convert, type=kind)
    records: Iterable[Any] = chunk.raw
    if isinstance(chunk.raw, list):
        quickly = _line_decoder(kind)
    else:
        with parquet_errors(chunk.path):
            records = records_of(chunk.raw)
    for place, raw in enumerate(records):
        try:
            yield quickly(raw)
        except _REFUSED:
            blank = isinstance(raw, bytes) and not raw.strip()
            yield None if blank else _decode_carefully(raw, kind, chunk.place(place))


def _line_decoder(kind: type[R]) -> Callable[[bytes], R]:
    """Returns what reads a line of JSON as a `kind`, and raises ValidationError on a key given twice too."""
    whole, fields = msgspec.json.Decoder(kind).decode, msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

    def decode_once(line: bytes) -> R:
        row = whole(line)
        # Rows hold no objects, so as many colons after quotes as keys leave no room for a second of one.
        if line.count(b'":') != len(fields(line)) and find_repeated_key(line) is not None:
            raise msgspec.ValidationError("a key appears twice")
        return row

    return decode_once


def _decode_carefully(raw: Any, kind: type[R], place: str) -> R | InputError:
    """Reads a record field by field, for an error that names place, field, value and remedy."""
    if isinstance(raw, bytes):
        try:
            line, raw = raw, decode_line(raw)
        except _REFUSED as error:
            return InputError(f"{place}: not JSON ({error}); write one object per line")
        if (twice := find_repeated_key(line)) is not None:
            return InputError(f"{place}: has {twice!r:.60} twice; keep one of them")
    if isinstance(raw, dict):
        fields = kind.__struct_fields__
        raw = {
            name: _plain_value(name, value)
            for name, value in raw.items()
            if name in fields or not _is_ignored(name, kind)
        }
        if issubclass(kind, Row):  # what follows from the board need not be there
            lists = {"size": raw.get("grid"), "agents": raw.get("starts")}
            raw = {name: len(values) for name, values in lists.items() if isinstance(values, list)} | raw
    try:
        return convert(raw, kind, place)
    except InputError as error:
        return error


def _plain_value(name: str, value: Any) -> Any:
    """The value as we write it: null for NaN, and true or false for 1 or 0, as pandas writes what may be missing."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return bool(value) if name == "wait_required" and isinstance(value, int | float) and value in (0, 1) else value


class _Named(msgspec.Struct):
    """Of a row only its id."""

    id: str


def read_ids(path: str | Path) -> Iterator[str]:
    """Yields the ids of a file's rows, bad rows included, if they have one."""
    decode = msgspec.json.Decoder(_Named).decode
    for chunk in read_chunks(path):
        if isinstance(chunk.raw, list):
            for line in chunk.raw:
                with contextlib.suppress(*_REFUSED):
                    yield decode(line).id if b"NaN" not in line else msgspec.convert(decode_line(line), _Named).id
        elif "id" in chunk.raw.schema.names:
            yield from (name for name in chunk.raw["id"].to_pylist() if isinstance(name, str))


def read_all(path: str | Path) -> list[Row]:
    """All rows of a file. Raises InputError at the first bad one."""
    return read_all_as(Row, path)


def read_all_as(kind: type[R], path: str | Path) -> list[R]:
    """Like `read_all`, for another kind of rows."""

    def stop(error: InputError) -> None:
        raise error

    return [row for chunk in read_rows(path, kind, stop) for row in chunk]
