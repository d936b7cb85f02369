"""A log of lines of JSON that takes its place once it is complete, so that repeated work leaves one log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.support import listed, replacing


@contextmanager
def line_log(path: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields a function that adds a line; the log is at `path` once the block ends without an error.

    One that a killed process left is removed first, so that the time of the folder is when this one was begun.
    """
    _part_file(path).unlink(missing_ok=True)
    with listed(path), replacing(path) as beside, open(beside, "wb", buffering=0) as lines:

        def add(figures: dict[str, Any]) -> None:
            lines.write(msgspec.json.encode(figures) + b"\n")

        yield add


def lines_so_far(path: Path) -> list[dict[str, Any]]:
    """The lines of the log for which a block is open, in this process or another."""
    beside = _part_file(path)
    return [msgspec.json.decode(line) for line in beside.read_bytes().split(b"\n")[:-1]] if beside.exists() else []


def _part_file(path: Path) -> Path:
    """The path at which `replacing` writes the log while it grows."""
    return path.with_name(f".{path.name}.part")
