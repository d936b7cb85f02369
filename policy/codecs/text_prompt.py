"""Prompts of the `text` codec: a board as text for language models, in full or in a few short lines.

The full prompt draws the lake in the letters of the published benchmark, which names five agents; the sixth to eighth
have the next letters of the alphabet that are still free. Moves are written as words, and an answer ends with a line
for each agent (`agent 0: RIGHT RIGHT WAIT`) after any amount of reasoning.

The compact prompt is for small language models that are trained on it:

    4x4 H11,13,32
    0: right from 20
    1: down left from 01

is a 4x4 lake with holes at (1, 1), (1, 3) and (3, 2). Agent 0 starts at (2, 0), and its goal is one cell to the right;
the goal of agent 1 is where `down left` would lead from (0, 1). So a goal is named by its offset, first the rows, then
the columns, which a small model can copy; holes and other agents may forbid that way. Answers have the form of the full
form in lower case, because only so most tokenizers have each word of a move as one token.

Rows as the published benchmark has them: an id, the number of agents, and a text that shows the board.

The board is read from the grid in the text: lines of letters with spaces between them, in the letters of the `text`
codec. Whatever else a row says about its board must agree with the grid.
"""

import re
from collections import Counter

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.core_jax.types import DOWN, LEFT, RIGHT, UP, WAIT, Board

FROZEN, HOLE = "F", "H"
STARTS, GOALS = "SsABCDEI", "Ggabcdei"  # agent 0, 1, 2 ...: `A` is where agent 2 starts, `a` is its goal
MAX_AGENTS = len(STARTS)
MOVE_WORDS = {LEFT: "LEFT", DOWN: "DOWN", RIGHT: "RIGHT", UP: "UP", WAIT: "WAIT"}
SYSTEM = "Plan moves."
LARGEST = 10  # cells are named by two digits
PROMPT = """\
Agents cross a frozen lake, all moving at the same time. Plan every agent's whole way to its own goal.

Number of agents: {agents}. The lake has {size} rows and {size} columns. A cell is written (row, column); both count \
from 0, and (0, 0) is the top left corner.

{lake}

F is frozen ground and H is a hole. Every other letter is frozen ground too, where an agent starts or has its goal:
{ends}

In each step every agent makes one move:
LEFT: to the column before, (row, column - 1)
DOWN: to the row below, (row + 1, column)
RIGHT: to the next column, (row, column + 1)
UP: to the row above, (row - 1, column)
WAIT: stays where it is

Rules:
- No agent may leave the lake or move into a hole.
- After a step, no two agents may be in the same cell.
- In a step, no two agents may exchange their cells. An agent may move into a cell that another one leaves in the same \
step, as long as they do not exchange cells.
- An agent whose moves are over stays where it is and is still in the way of others.
- In the end every agent must be on its own goal.
Among the plans that keep the rules the best one has the smallest sum of costs: for each agent, count the steps until \
it is on its goal for good, waits included, and add them up.

Think as long as you like. Then end your answer with one line for each agent, in order, and nothing after them. A line \
holds the agent's moves, separated by spaces, as in
{example}
"""
EXAMPLE = ("RIGHT RIGHT WAIT DOWN", "UP LEFT")  # unrelated to any board
_LINE = re.compile(rf"[ \t>`]*([{FROZEN}{HOLE}{STARTS}{GOALS}](?: [{FROZEN}{HOLE}{STARTS}{GOALS}])+)[ \t`]*")
_PLACE = re.compile(
    rf"(?:starts at|goal is) ([{STARTS}{GOALS}]) \(([0-9]{{1,3}}), ?([0-9]{{1,3}})\)"
)  # as this project's prompts put it
_NAME = re.compile(r"([0-9]+)ag_([0-9]+)x([0-9]+)_")  # 3ag_4x4_hr0.1_000


def encode_prompt(board: Board) -> str:
    """Return the full prompt of one board of numpy arrays, 1 to 8 agents.

    Raises ValueError on more agents, or if two starts or goals share a cell, which has room for one letter.
    """
    starts, goals = np.asarray(board.starts).tolist(), np.asarray(board.goals).tolist()
    agents = len(starts)
    if agents > MAX_AGENTS:
        raise ValueError(f"a prompt has letters for {MAX_AGENTS} agents, not {agents}")
    return PROMPT.format(
        agents=agents,
        size=board.holes.shape[0],
        lake="\n".join(" ".join(row) for row in draw_lake(board)),
        ends="\n".join(
            f"agent {agent}: starts at {STARTS[agent]} {_format_cell(start)}, its goal is {GOALS[agent]} "
            f"{_format_cell(goal)}"
            for agent, (start, goal) in enumerate(zip(starts, goals, strict=True))
        ),
        example="\n".join(f"agent {agent}: {EXAMPLE[agent % len(EXAMPLE)]}" for agent in range(agents)),
    )


def encode_compact_prompt(board: Board) -> str:
    """Return the compact prompt of one board of numpy arrays. Raises InputError on a board larger than 10x10."""
    size = board.holes.shape[0]
    if size > LARGEST:
        raise InputError(f"a board is {size}x{size}, compact prompts are for at most {LARGEST}x{LARGEST}; leave it out")
    starts, goals = np.asarray(board.starts).tolist(), np.asarray(board.goals).tolist()
    holes = ",".join(map(_format_compact_cell, np.argwhere(board.holes).tolist()))
    ways = (
        f"{agent}: {_describe_offset(start, goal)} from {_format_compact_cell(start)}"
        for agent, (start, goal) in enumerate(zip(starts, goals, strict=True))
    )
    return "\n".join([f"{size}x{size}" + f" H{holes}" * bool(holes), *ways])


def draw_lake(board: Board) -> list[list[str]]:
    """Return the letters of one board's cells, row by row. Raises ValueError if two starts or goals share a cell."""
    lake = np.where(np.asarray(board.holes), HOLE, FROZEN)
    for letters, cells in ((STARTS, np.asarray(board.starts)), (GOALS, np.asarray(board.goals))):
        for letter, (row, column) in zip(letters, cells.tolist(), strict=False):
            if lake[row, column] not in (FROZEN, HOLE):
                raise ValueError(f"cell ({row}, {column}) is both {lake[row, column]} and {letter}; it can be one only")
            lake[row, column] = letter
    return lake.tolist()


def _format_cell(cell: list[int]) -> str:
    return f"({cell[0]}, {cell[1]})"


def _format_compact_cell(cell: list[int]) -> str:
    return f"{cell[0]}{cell[1]}"


def _describe_offset(start: list[int], goal: list[int]) -> str:
    """Return the moves that lead to a goal on an empty board; `here` if the agent is there already."""
    rows, columns = (there - here for here, there in zip(start, goal, strict=True))
    moves = [*[DOWN if rows > 0 else UP] * abs(rows), *[RIGHT if columns > 0 else LEFT] * abs(columns)]
    return " ".join(MOVE_WORDS[move].lower() for move in moves) or "here"


class PublishedRow(msgspec.Struct, frozen=True):
    """A row of the published benchmark; other fields are ignored."""

    sample_id: str
    num_agents: int
    text: str


def row_of_published(published: PublishedRow) -> Row:
    """Return the board of a published row, without labels. Raises ValueError if the row contradicts its own text."""
    row = read_lake(published.sample_id, published.text)
    if row.agents != published.num_agents:
        raise ValueError(
            f"num_agents is {published.num_agents}, but the grid of text has {row.agents} starts; correct one of them"
        )
    if name := _NAME.match(published.sample_id):
        agents, size, width = map(int, name.groups())
        if (agents, size, width) != (row.agents, row.size, row.size):
            shown = f"{row.agents} agents on {row.size}x{row.size}"
            raise ValueError(
                f"sample_id is {published.sample_id!r:.60}, but the grid of text has {shown}; correct one of them"
            )
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
            raise ValueError(
                f"text says that {letter} is at {stated}, but its grid has it at {cells[letter]}; correct one of them"
            )
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
