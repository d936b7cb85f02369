"""Rows as the published benchmark has them: an id, the number of agents, and a text that shows the board.

The board is read from the grid in the text: lines of letters with spaces between them, in the letters of the `text`
codec. Whatever else a row says about its board must agree with the grid.
"""

import re
from collections import Counter

import msgspec

from lakewright.core_jax.rows import Row
from lakewright.policy.codecs.text_prompt import FROZEN, GOALS, HOLE, STARTS

_LINE = re.compile(rf"[ \t>`]*([{FROZEN}{HOLE}{STARTS}{GOALS}](?: [{FROZEN}{HOLE}{STARTS}{GOALS}])+)[ \t`]*")
_PLACE = re.compile(
    rf"(?:starts at|goal is) ([{STARTS}{GOALS}]) \(([0-9]{{1,3}}), ?([0-9]{{1,3}})\)"
)  # as this project's prompts put it
_NAME = re.compile(r"([0-9]+)ag_([0-9]+)x([0-9]+)_")  # 3ag_4x4_hr0.1_000


class PublishedRow(msgspec.Struct, frozen=True):
    """A row of the published benchmark; other fields are ignored."""

    sample_id: str
    num_agents: int
    text: str


def row_of(published: PublishedRow) -> Row:
    """Return the board of a published row, without labels. Raises ValueError if the row contradicts its own text."""
    row = read_lake(published.sample_id, published.text)
    if row.agents != published.num_agents:
        raise ValueError(f"num_agents is {published.num_agents}, but the grid of text has {row.agents} starts")
    if name := _NAME.match(published.sample_id):
        agents, size, width = map(int, name.groups())
        if (agents, size, width) != (row.agents, row.size, row.size):
            shown = f"{row.agents} agents on {row.size}x{row.size}"
            raise ValueError(f"sample_id is {published.sample_id!r:.60}, but the grid of text has {shown}")
    return row


def check_text(row: Row, text: str) -> None:
    """Raise ValueError if `text` shows another board than `row` has."""
    shown = read_lake(row.id, text)
    for name in ("size", "agents", "grid", "starts", "goals"):
        here, there = getattr(row, name), getattr(shown, name)
        if here != there:
            raise ValueError(f"{name} is {here!r:.60}, but text shows {there!r:.60}; correct one of them")


def read_lake(name: str, text: str) -> Row:
    """Return the board whose grid is in `text`, as a row of id `name`.

    Raises ValueError unless there is exactly one square grid, if letters are missing or occur twice, or if the wording
    of this project's prompts gives another cell for a letter.
    """
    grid = _find_grid(text)
    counts = Counter(letter for row in grid for letter in row if letter not in FROZEN + HOLE)
    cells = {letter: (r, c) for r, row in enumerate(grid) for c, letter in enumerate(row) if letter in counts}
    if twice := [letter for letter, count in counts.items() if count > 1]:
        raise ValueError(f"the grid of text has {twice[0]} in {counts[twice[0]]} cells; each start and goal has one")
    agents = len(cells) // 2
    wanted = "".join(STARTS[i] + GOALS[i] for i in range(-(-len(cells) // 2) or 1))
    if missing := [letter for letter in wanted if letter not in cells]:
        raise ValueError(f"the grid of text has no {missing[0]} next to {' '.join(sorted(cells)) or 'holes'}; add it")
    for letter, *numbers in _PLACE.findall(text):
        stated = (int(numbers[0]), int(numbers[1]))
        if cells.get(letter, stated) != stated:
            raise ValueError(f"text says that {letter} is at {stated}, but its grid has it at {cells[letter]}")
    lines = ["".join(HOLE if letter == HOLE else "." for letter in row) for row in grid]
    starts, goals = ([cells[letter] for letter in letters[:agents]] for letters in (STARTS, GOALS))
    return Row(name, len(lines), agents, lines, starts, goals)


def _find_grid(text: str) -> list[list[str]]:
    """Return the letters of the only square grid in `text`; other lines of letters, such as a legend, do not count."""
    grids: list[list[list[str]]] = [[]]
    for part in text.splitlines():
        if line := _LINE.fullmatch(part):
            grids[-1].append(line[1].split(" "))
        elif grids[-1]:
            grids.append([])
    found = [grid for grid in grids if grid]
    if not found:
        raise ValueError("text has no grid; a row of it is letters with a space between, such as `S F H`")
    square = [grid for grid in found if {len(line) for line in grid} == {len(grid)}]
    if not square:
        lengths = ", ".join(sorted({str(len(line)) for line in found[0]}))
        raise ValueError(f"the grid of text has {len(found[0])} rows of {lengths} cells; it must be square")
    if any(grid != square[0] for grid in square):
        raise ValueError(f"text has {len(square)} grids that differ; which of them is the board?")
    return square[0]
