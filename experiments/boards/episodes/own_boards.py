"""A board of one's own for environments: as Gymnasium's FrozenLake takes it, or a row."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import convert
from lakewright.experiments.boards.formats.cells import pad_to_square

LETTERS = "SFHG"
LARGEST = 256  # cells on a side
REMEDY = "give a line of S, F, H and G for each row of the board, as FrozenLake takes it, or a row of a file of boards"


def read_board(desc: Any) -> Row:
    """The row of a board.

    desc: a row or its fields, as JSON has them; or for one agent lines of S (start), F (frozen), H (hole) and G (goal),
    as Gymnasium's FrozenLake takes them: strings, bytes, or arrays of letters. A rectangle's rows are padded with
    holes, to the right or below, so each plan is one of the rectangle.

    Raises InputError with the line, the value and the remedy.
    """
    if isinstance(desc, Row):
        return desc
    if isinstance(desc, Mapping):
        fields = {"id": "desc", **desc}
        known = {name: value for name, value in fields.items() if name in Row.__struct_fields__}
        if unknown := [name for name in fields if name not in known]:
            raise InputError(f"desc: unknown field {unknown[0]!r:.60}; choose from {', '.join(Row.__struct_fields__)}")
        return convert(msgspec.to_builtins(known), Row, "desc")
    lines = _read_lines(desc)
    found: dict[str, list[tuple[int, int]]] = {"S": [], "G": []}
    for number, line in enumerate(lines):
        if other := line.strip(LETTERS):
            raise InputError(f"desc[{number}] has the letter {other[0]!r}; {REMEDY}")
        for column, letter in enumerate(line):
            if letter in found:
                found[letter].append((number, column))
    for letter, cells in found.items():
        if len(cells) != 1:
            raise InputError(f"desc has {len(cells)} cells {letter}; give one S and one G, or a row for several agents")
    grid = pad_to_square(["".join("H" if letter == "H" else "." for letter in line) for line in lines])
    return Row("desc", len(grid), 1, grid, found["S"], found["G"])


def _read_lines(desc: Any) -> list[str]:
    """Lines of equal length, from strings, bytes, or arrays or lists of letters."""
    if isinstance(desc, str | bytes) or not isinstance(desc, list | tuple | np.ndarray) or not len(desc):
        raise InputError(f"desc is {desc!r:.60}; {REMEDY}")
    lines = [_read_line(line, number) for number, line in enumerate(desc)]
    if max(len(lines), len(lines[0])) > LARGEST:
        raise InputError(f"desc has {len(lines)} lines of {len(lines[0])}; give at most {LARGEST} cells on a side")
    for number, line in enumerate(lines):
        if not line or len(line) != len(lines[0]):
            raise InputError(f"desc[{number}] has {len(line)} cells, desc[0] {len(lines[0])}; make all lines equal")
    return lines


def _read_line(line: Any, number: int) -> str:
    try:
        parts = [line] if isinstance(line, str | bytes) else list(line)
        return "".join(part.decode("ascii") if isinstance(part, bytes) else part for part in parts)
    except (TypeError, UnicodeDecodeError, AttributeError):
        raise InputError(f"desc[{number}] is {line!r:.60}; {REMEDY}") from None
