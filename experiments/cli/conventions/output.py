"""The output of commands: results on standard output, errors in one line on standard error."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from lakewright.core_jax.errors import one_line

T = TypeVar("T")


def print_found(found: T, json: bool, as_text: Callable[[T], str]) -> None:
    """Prints what a command found, as JSON or as text."""
    print(encode_line(found) if json else as_text(found))


def encode_line(value: Any) -> str:
    """A value as a line of JSON."""
    import msgspec

    return msgspec.json.encode(value).decode()


def print_summary(summary: dict[str, Any], json: bool) -> None:
    """Prints what a command made: as JSON where requested, otherwise on a terminal only."""
    if json:
        print(encode_line(summary))
    elif sys.stderr.isatty():
        print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in summary.items()), file=sys.stderr)


def print_error(error: str) -> None:
    """Prints the line of an error."""
    print(f"lakewright: {one_line(error)}", file=sys.stderr)
