"""Columns as lines of JSON, byte for byte as msgspec writes the rows, and back."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from lakewright.core_jax.rows.columns import list_array, list_lengths, read_letters

ESCAPED = np.isin(np.arange(256), [*range(32), *b'"\\\x7f'])  # bytes that are not written as they are in a string


def encode_lines(batch: pa.RecordBatch) -> pa.Buffer:
    """A line of JSON for each row, its fields in the order of the schema."""
    if not len(batch):
        return pa.py_buffer(b"")
    pieces: list[object] = []
    for number, name in enumerate(batch.schema.names):
        pieces += [f'{"," if number else "{"}"{name}":', _encode_values(batch[name])]
    return pa.py_buffer(read_letters(pc.binary_join_element_wise(*pieces, "}\n", "")))


def _encode_values(array: pa.Array) -> pa.StringArray:
    """Each value as JSON."""
    if pa.types.is_list(array.type) and _are_plain_strings(array):
        values = pc.binary_join_element_wise('["', pc.binary_join(array, '","'), '"]', "")
    elif pa.types.is_list(array.type):
        inner = pc.binary_join(_nest_like(array, _encode_values(array.flatten())), ",")
        values = pc.binary_join_element_wise("[", inner, "]", "")
    elif pa.types.is_string(array.type):
        values = _quote_strings(array)
    elif pa.types.is_floating(array.type):
        coded = array.dictionary_encode()
        words = [msgspec.json.encode(value).decode() for value in coded.dictionary.to_pylist()]
        values = pa.array(words, pa.string()).take(coded.indices)
    else:
        values = array.cast(pa.string())
    return values.fill_null("null") if values.null_count else values


def _nest_like(lists: pa.ListArray, inner: pa.Array) -> pa.ListArray:
    """Lists of `inner`, cut as `lists` are and null if they are."""
    return list_array(list_lengths(lists), inner, lists.is_valid().to_numpy(zero_copy_only=False))


def _are_plain_strings(lists: pa.ListArray) -> bool:
    """Return True if all lists hold strings, at least one each, without letters to escape."""
    if not pa.types.is_string(lists.type.value_type):
        return False
    strings = lists.flatten()
    return not (strings.null_count or _needs_escapes(strings)) and bool((list_lengths(lists.drop_null()) > 0).all())


def _needs_escapes(strings: pa.StringArray) -> bool:
    """Return True if any string, null or not, has a letter to escape."""
    return bool(ESCAPED[read_letters(strings)].any())


def _quote_strings(strings: pa.StringArray) -> pa.StringArray:
    if not _needs_escapes(strings):
        return pc.binary_join_element_wise('"', strings, '"', "")
    return pa.array([None if text is None else msgspec.json.encode(text).decode() for text in strings.to_pylist()])


def parse_lines(lines: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch | None:
    """The rows of lines of JSON as columns of `schema`, null if a field is missing.

    None if any line is more, less or other than one object of such fields, or cannot be read here with certainty.
    """
    data = b"".join(lines)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if not _has_object_a_line(data, len(lines)):
        return None
    fields = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    whole = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        table = pj.read_json(pa.BufferReader(data), read_options=whole, parse_options=fields)
    except (pa.ArrowException, OSError):
        return None
    return pa.concat_batches(table.select(schema.names).to_batches()) if len(table) == len(lines) else None


def _has_object_a_line(data: bytes, lines: int) -> bool:
    """Return True if each line begins and ends like an object, in UTF-8, without escapes that may be half a letter."""
    if not data.startswith(b"{") or not data.rstrip(b"\n").endswith(b"}") or data.count(b"}\n{") != lines - 1:
        return False
    if b"\\u" in data:
        return False
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False
