"""POGEMA's map strings: `.` free, `#` blocked, `a` the start of the first agent and `A` its goal.

In a file there are many of them, by name, as in POGEMA's own YAML files of maps. POGEMA takes 26 agents this way.
"""

import string

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.experiments.boards.formats.cells import Square, pad_to_square

STARTS, GOALS = string.ascii_lowercase, string.ascii_uppercase


def map_string(row: Row) -> str:
    """A board with its starts and goals. Raises InputError if a cell would need two letters, or letters run out."""
    if row.agents > len(STARTS):
        raise InputError(f"{row.id!r:.60} has {row.agents} agents; a map string has letters for {len(STARTS)}")
    lines = [list(line.replace("H", "#")) for line in row.grid]
    for letters, cells in ((STARTS, row.starts), (GOALS, row.goals)):
        for letter, (line, column) in zip(letters, cells, strict=False):
            if lines[line][column] != ".":
                shared = f"both {lines[line][column]!r} and {letter!r}"
                raise InputError(
                    f"{row.id!r:.60}: the cell [{line}, {column}] is {shared}; a map string has one letter a cell"
                )
            lines[line][column] = letter
    return "\n".join(map("".join, lines))


def read_map_string(text: str, name: str, place: str) -> Row:
    """The board of a map string. Raises InputError with the line, the value and the remedy."""
    lines = text.split()
    cells: dict[str, Square] = {}
    for number, line in enumerate(lines, 1):
        if len(line) != len(lines[0]):
            raise InputError(f"{place}:{number}: {len(line)} cells, but the first line has {len(lines[0])}; correct it")
        for column, letter in enumerate(line):
            if letter not in ".#" + STARTS + GOALS:
                raise InputError(f"{place}:{number}: the letter {letter!r}; use . # a-z for starts and A-Z for goals")
            if letter in cells:
                raise InputError(f"{place}:{number}: a second {letter!r}; each start and goal has one cell")
            if letter not in ".#":
                cells[letter] = (number - 1, column)
    named = sorted({letter.lower() for letter in cells})
    if not named:
        raise InputError(f"{place}: no agent; write `a` at the start and `A` at the goal of the first")
    for agent, letter in enumerate(named):
        if letter != STARTS[agent]:
            raise InputError(f"{place}: no agent {STARTS[agent]!r} before {letter!r}; use the letters from `a` on")
        for half in (letter, letter.upper()):
            if half not in cells:
                raise InputError(f"{place}: no {half!r} for the agent {letter!r}; add it")
    grid = pad_to_square(["".join("H" if letter == "#" else "." for letter in line) for line in lines])
    starts, goals = ([cells[letter] for letter in letters[: len(named)]] for letters in (STARTS, GOALS))
    return Row(name, len(grid), len(named), grid, starts, goals)
