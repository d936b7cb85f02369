"""Structs to Arrow columns and back, nested lists flattened on the way: many times faster than row by row."""

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def table_of(rows: Sequence[msgspec.Struct], schema: pa.Schema) -> pa.Table:
    """The rows as a table of `schema`, whose columns are fields of each row."""
    columns = [to_arrow([getattr(row, field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def records_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """As `batch.to_pylist()`."""
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*map(to_python, batch.columns), strict=True)]


def to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """As `pa.array(values, kind)`."""
    if not pa.types.is_list(kind):
        return pa.array(values, kind)
    lengths = np.fromiter((len(value or ()) for value in values), np.int32, len(values))
    ends = pa.array(np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32)))
    inner = to_arrow(list(itertools.chain.from_iterable(value or () for value in values)), kind.value_type)
    nulls = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(ends, inner, kind, mask=nulls)


def to_python(array: pa.Array) -> list[Any]:
    """As `array.to_pylist()`."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array.to_numpy(zero_copy_only=False).tolist()
    if pa.types.is_integer(array.type) and not array.null_count:
        return array.to_numpy().tolist()
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return array.to_pylist()
    inner = to_python(array.flatten())
    lengths = pc.list_value_length(array)
    ends = np.cumsum(lengths.fill_null(0).to_numpy()).tolist()
    lists: list[Any] = [inner[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    if array.null_count:
        lists = [some if valid else None for some, valid in zip(lists, array.is_valid().to_pylist(), strict=True)]
    return lists
