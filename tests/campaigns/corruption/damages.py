"""Damages: one thing in one file is changed, as a disk, a copy, or a hand may change it."""

import json
import struct
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

JSON, LINES, TABLE, TENSORS, SETTINGS = ".json", ".jsonl", ".parquet", ".safetensors", ".toml"
HEADER = 8  # bytes at the beginning of a file of tensors, which say how long the names and shapes after them are


class Target(NamedTuple):
    """A file to damage: its path, that of another run, and an older version of it, if there are such files."""

    path: Path
    other: Path | None = None
    older: Path | None = None


def list_kinds(target: Target) -> list[str]:
    """The kinds of damage that a file can have."""
    suffix, there = target.path.suffix, target.path.stat().st_size > 0
    kinds = {
        "byte": there,
        "truncated": there,
        "bit of a tensor": suffix == TENSORS,
        "value of a field": there and suffix in (JSON, LINES, TABLE, SETTINGS),
        "of another run": _differs(target.path, target.other),
        "older version": _differs(target.path, target.older),
    }
    return [kind for kind, possible in kinds.items() if possible]


def damage_file(target: Target, kind: str, random: np.random.Generator) -> str:
    """Damages a file, and says what was changed."""
    if kind in ("of another run", "older version"):
        source = target.other if kind == "of another run" else target.older
        assert source is not None, f"{target.path} has no {kind}"
        target.path.write_bytes(source.read_bytes())
        return kind
    return _DAMAGES[kind](target.path, random)


def _differs(path: Path, other: Path | None) -> bool:
    return other is not None and other.is_file() and other.read_bytes() != path.read_bytes()


def _change_byte(path: Path, random: np.random.Generator, first: int = 0) -> str:
    data = bytearray(path.read_bytes())
    place = int(random.integers(first, len(data)))
    data[place] ^= int(random.integers(1, 256))
    path.write_bytes(data)
    return f"byte {place}"


def _change_tensor(path: Path, random: np.random.Generator) -> str:
    data = bytearray(path.read_bytes())
    (header,) = struct.unpack("<Q", data[:HEADER])
    place, bit = int(random.integers(HEADER + header, len(data))), int(random.integers(8))
    data[place] ^= 1 << bit
    path.write_bytes(data)
    return f"bit {bit} of byte {place}"


def _truncate(path: Path, random: np.random.Generator) -> str:
    data = path.read_bytes()
    kept = int(random.integers(0, len(data)))
    path.write_bytes(data[:kept])
    return f"{kept} of {len(data)} bytes left"


def _change_field(path: Path, random: np.random.Generator) -> str:
    """Changes a value of a record; if the text is not a record any more, a byte of it."""
    try:
        return {JSON: _change_json, LINES: _change_line, TABLE: _change_cell, SETTINGS: _change_setting}[path.suffix](
            path, random
        )
    except (ValueError, IndexError):  # nothing in it has a value
        return _change_byte(path, random)


def _change_json(path: Path, random: np.random.Generator) -> str:
    value, place = _change_leaf(json.loads(path.read_bytes()), random)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
    return place


def _change_line(path: Path, random: np.random.Generator) -> str:
    lines = path.read_bytes().splitlines(keepends=True)
    number = int(random.integers(len(lines)))
    value, place = _change_leaf(json.loads(lines[number]), random)
    lines[number] = msgspec.json.encode(value) + b"\n"
    path.write_bytes(b"".join(lines))
    return f"line {number + 1}: {place}"


def _change_cell(path: Path, random: np.random.Generator) -> str:
    table = pq.read_table(path, partitioning=None)
    rows, place = _change_leaf(table.to_pylist(), random)
    try:
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    return place


def _change_setting(path: Path, random: np.random.Generator) -> str:
    """Changes a number or a word of a TOML text in its line."""
    lines = path.read_text().splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if "=" in line and not line.startswith("#")]
    number = places[int(random.integers(len(places)))]
    name, _, given = lines[number].partition("=")
    value, place = _change_leaf(tomllib.loads(f"value = {given.strip()}")["value"], random)
    lines[number] = f"{name}= {json.dumps(value)}\n"
    path.write_text("".join(lines))
    return f"line {number + 1}: {name.strip()}{place}"


def _change_leaf(value: Any, random: np.random.Generator) -> tuple[Any, str]:
    """A value with one of the leaves in it changed, and the place of that. Raises IndexError if it has none."""
    leaves = list(_list_leaves(value, ()))
    place = leaves[int(random.integers(len(leaves)))]
    return _replace(value, place, random), ".".join(map(str, place))


def _list_leaves(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        yield place
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _list_leaves(inner, (*place, key))


def _replace(value: Any, place: tuple[Any, ...], random: np.random.Generator) -> Any:
    if not place:
        return _change_value(value, random)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _replace(value[place[0]], place[1:], random)
    return copy


def _change_value(value: Any, random: np.random.Generator) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + int(random.choice([-1, 1, 7]))
        case float():
            return value * 1.25 + 0.125
        case str() if value:
            at = int(random.integers(len(value)))
            return value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
        case None:
            return 1
        case _:
            return "x"


_DAMAGES: dict[str, Callable[[Path, np.random.Generator], str]] = {
    "byte": _change_byte,
    "truncated": _truncate,
    "bit of a tensor": _change_tensor,
    "value of a field": _change_field,
}
