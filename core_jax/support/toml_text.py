"""TOML from outside: bounded in size, in the depth of its keys and tables, and in its whole numbers."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from lakewright.core_jax.errors import InputError

MOST_LETTERS = 1 << 20
MOST_PARTS = 64  # of a key: tomllib's work grows with their square
BITS = 64  # of a whole number: Python refuses to print one of thousands of digits
# Comments and strings; one without its end reaches to the end of its line or of the text, so that all is read once.
OPAQUE = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^"\\]+|\\.|"{1,2}(?!"))*(?:"{3,5})?'
    r"|'''(?:[^']+|'{1,2}(?!'))*(?:'{3,5})?"
    r'|"(?:[^"\\\n]+|\\[^\n])*"?'
    r"|'[^'\n]*'?",
    re.DOTALL,
)
BETWEEN_KEYS = re.compile(r"[,={}\[\]\n]")


def toml_table(text: str, where: str) -> dict[str, Any]:
    """The table of a TOML text; `where` names its source.

    Raises InputError on what no settings need and what is slow to read or cannot be printed: a text that is too long or
    nested too deeply, or a whole number beyond 64 bits. Raises TOMLDecodeError where the text is no TOML.
    """
    if len(text) > MOST_LETTERS:
        raise InputError(f"{where}: {len(text)} characters of TOML; give at most {MOST_LETTERS}")
    if any(piece.count(".") >= MOST_PARTS for piece in BETWEEN_KEYS.split(OPAQUE.sub("", text))):
        raise InputError(f"{where}: a key has more than {MOST_PARTS} parts; shorten it")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise InputError(f"{where}: its brackets are nested too deeply; nest at most {MOST_PARTS}") from error
    except ValueError as error:  # of int(), which reads no number of thousands of digits
        raise InputError(f"{where}: a whole number has thousands of digits; choose one within {BITS} bits") from error
    for path, value in _walk_values(table, where):
        if isinstance(value, int) and value.bit_length() > BITS:
            raise InputError(
                f"{where}: {path:.60}: a whole number of {value.bit_length()} bits; choose one within {BITS} bits"
            )
    return table


def _walk_values(table: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """All that the table holds, each with its dotted name. Raises InputError where it is nested too deeply."""
    waiting: list[tuple[str, Any, int]] = [(str(key), value, 1) for key, value in table.items()]
    while waiting:
        path, value, depth = waiting.pop()
        yield path, value
        parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        if parts and depth >= MOST_PARTS:
            raise InputError(f"{where}: {path:.60}: more than {MOST_PARTS} tables deep; nest less")
        waiting += [(f"{path}.{key}", part, depth + 1) for key, part in parts]
