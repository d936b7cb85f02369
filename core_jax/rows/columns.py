"""Arrow columns: from structs and back, nested lists flattened on the way, and their parts as numpy arrays."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def columns_of(rows: Sequence[msgspec.Struct], schema: pa.Schema) -> pa.RecordBatch:
    """The rows as columns of `schema`, which are fields of each row."""
    columns = [to_arrow([getattr(row, field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def records_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The same as `batch.to_pylist()`."""
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*map(to_python, batch.columns), strict=True)]


def to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The same as `pa.array(values, kind)`."""
    if not pa.types.is_list(kind):
        return pa.array(values, kind)
    lengths = np.fromiter((len(value or ()) for value in values), np.int32, len(values))
    inner = to_arrow(list(itertools.chain.from_iterable(value or () for value in values)), kind.value_type)
    return list_array(lengths, inner, np.fromiter((value is not None for value in values), bool, len(values)))


def to_python(array: pa.Array) -> list[Any]:
    """The same as `array.to_pylist()`."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array.to_numpy(zero_copy_only=False).tolist()
    if pa.types.is_integer(array.type) and not array.null_count:
        return array.to_numpy().tolist()
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return array.to_pylist()
    inner = to_python(array.flatten())
    ends = np.cumsum(list_lengths(array)).tolist()
    lists: list[Any] = [inner[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    if array.null_count:
        lists = [some if valid else None for some, valid in zip(lists, array.is_valid().to_pylist(), strict=True)]
    return lists


def list_lengths(array: pa.Array) -> np.ndarray:
    """The length of each list, or the bytes of each string; 0 of a null."""
    measure = pc.binary_length if pa.types.is_string(array.type) else pc.list_value_length
    return measure(array).fill_null(0).to_numpy(zero_copy_only=False)


def read_letters(strings: pa.Array) -> np.ndarray:
    """The bytes of all strings, one after the other, uint8; there must be no null."""
    if not len(strings):
        return np.empty(0, np.uint8)
    _, ends, data = strings.buffers()
    # A sliced array shares the buffers of the whole, so the offset says where its own strings begin.
    ends = np.frombuffer(ends, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    return np.frombuffer(data if data is not None else b"", np.uint8)[ends[0] : ends[-1]]


def read_numbers(array: pa.Array) -> np.ndarray:
    """A column of whole numbers as numpy has them; 0 if null."""
    return (array.fill_null(0) if array.null_count else array).to_numpy()


def strings_array(text: np.ndarray, lengths: np.ndarray) -> pa.StringArray:
    """Strings of these lengths, cut from uint8 `text`."""
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(_sum_lengths(lengths)), pa.py_buffer(text))


def list_array(lengths: np.ndarray, inner: pa.Array, valid: np.ndarray | None = None) -> pa.ListArray:
    """Lists of these lengths, cut from `inner`; null if not `valid`, bool."""
    mask = None if valid is None or valid.all() else pa.array(~valid)
    return pa.ListArray.from_arrays(pa.array(_sum_lengths(lengths)), inner, mask=mask)


def _sum_lengths(lengths: np.ndarray) -> np.ndarray:
    """The place where each begins, and where the last ends: int32."""
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    return ends


def by_kind(kinds: np.ndarray, function: Callable[[np.ndarray], pa.RecordBatch]) -> pa.RecordBatch:
    """`function` of the places of each kind, int [places]; its rows in the order of the places, of which there are any.

    kinds: int [B, ...], equal if rows are of one kind.
    """
    groups = places_by_kind(kinds)
    if len(groups) == 1:
        return function(groups[0])
    return pa.concat_batches([function(places) for places in groups]).take(pa.array(np.argsort(np.concatenate(groups))))


def places_by_kind(kinds: np.ndarray) -> list[np.ndarray]:
    """The places of each kind, int [B, ...], rising."""
    # A file with one size and number of agents needs no sort.
    if (kinds == kinds[:1]).all():  # as nearly always
        return [np.arange(len(kinds))] if len(kinds) else []
    order = np.lexsort(kinds.reshape(len(kinds), -1).T[::-1])
    changes = np.diff(kinds[order], axis=0).reshape(len(kinds) - 1, -1).any(axis=1)
    return np.split(order, np.flatnonzero(changes) + 1)


def take_places(batch: pa.RecordBatch, places: np.ndarray) -> pa.RecordBatch:
    """The rows at `places`, which rise."""
    return batch if len(places) == len(batch) else batch.take(pa.array(places))
