"""Files of indented JSON, for people and programs."""

from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.support.atomic_files import write_atomically


def write_json(path: str | Path, value: Any, writer: str = "") -> None:
    """Writes a value as indented JSON, completely or not at all; `writer` as for `replacing`."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(value)) + b"\n", writer)
