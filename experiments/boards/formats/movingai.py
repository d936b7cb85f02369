"""MovingAI's `.map` and `.scen`: https://movingai.com/benchmarks/formats.html.

A map is four header lines and one line of letters for each row. A scenario has `version 1` and a line for each agent,
with tabs between: bucket, map, width, height, start x, start y, goal x, goal y, length. x is the column. The length
is the agent's shortest path on its own, never an optimum of the team.
"""

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, find_distance
from lakewright.experiments.boards.formats.cells import Square, check_agents, pad_to_square

FREE, BLOCKED = ".G", "@OT"  # of the published letters; swamp and water are neither for a team on ice
DIGITS = 6  # of a number: no map is larger
COLUMNS = ("bucket", "map", "width", "height", "start x", "start y", "goal x", "goal y", "length")


def map_text(row: Row) -> str:
    """The holes of a board as a map."""
    lines = [line.replace("H", "@") for line in row.grid]
    return "\n".join(["type octile", f"height {row.size}", f"width {row.size}", "map", *lines]) + "\n"


def scenario_text(row: Row, map_name: str) -> str:
    """The starts and goals of a board as a scenario on the map of that name."""
    lines = ["version 1"]
    for agent, (start, goal) in enumerate(zip(row.starts, row.goals, strict=True)):
        steps = find_distance(row, agent)
        length = f"{-1 if steps is None else steps:.8f}"  # -1 where the goal cannot be reached
        numbers = (row.size, row.size, start[1], start[0], goal[1], goal[0])
        lines.append("\t".join(["0", map_name, *map(str, numbers), length]))
    return "\n".join(lines) + "\n"


def read_map(text: str, place: str) -> list[str]:
    """The grid of a map, in our letters, padded with holes to a square. Raises InputError as `read_rectangle`."""
    return pad_to_square(read_rectangle(text, place))


def read_rectangle(text: str, place: str, free: str = FREE, blocked: str = BLOCKED) -> list[str]:
    """The grid of a map in its own sides, in our letters. Raises InputError with the line, the value and the remedy.

    text, place: the map, and its file for the message. free, blocked: the letters of such cells.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    head = next((number for number, line in enumerate(lines) if line == "map"), None)
    if head is None:
        raise InputError(f"{place}: no line `map` in {len(lines)} lines; this is not a MovingAI map")
    sides = {}
    for number, line in enumerate(lines[:head], 1):
        name, _, value = line.partition(" ")
        if name in ("height", "width"):
            sides[name] = _read_number(value, f"{place}:{number}: {name}")
    rows = [(number, line) for number, line in enumerate(lines[head + 1 :], head + 2) if line]
    height, width = sides.get("height", len(rows)), sides.get("width", len(rows[0][1]) if rows else 0)
    if not height or not width:
        raise InputError(f"{place}: the map is {height} rows by {width} columns; give at least one of each")
    if len(rows) != height:
        raise InputError(f"{place}: {len(rows)} rows follow `map`, but height is {height}; correct one of them")
    return [_grid_line(line, width, (free, blocked), f"{place}:{number}") for number, line in rows]


def read_scenario(text: str, place: str) -> tuple[str, list[Square], list[Square], tuple[int, int]]:
    """Name of the map, starts, goals, and (width, height) of a scenario.

    Raises InputError with the line, the value and the remedy.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines or not lines[0][1].lower().startswith("version"):
        raise InputError(
            f"{place}:1: {lines[0][1] if lines else ''!r:.40} where `version 1` should be; this is not a scenario"
        )
    entries = [_read_entry(line, f"{place}:{number}") for number, line in lines[1:]]
    if not entries:
        raise InputError(f"{place}: no agents; a scenario has a line for each")
    maps, sides = {entry[0] for entry in entries}, {entry[1] for entry in entries}
    if len(maps) > 1 or len(sides) > 1:
        raise InputError(
            f"{place}: its agents are on {len(maps)} maps, such as {sorted(maps)[0]!r:.40}; split the file"
        )
    return maps.pop(), [entry[2] for entry in entries], [entry[3] for entry in entries], sides.pop()


def make_board(grid: list[str], scenario: tuple[list[Square], list[Square]], name: str, place: str) -> Row:
    """The row of a map and of the starts and goals on it.

    Args:
        grid: The rows of the map, `.` and `H`.
        scenario: Starts and goals.
        name: The id of the row.
        place: The file for the message.

    Raises InputError if they do not fit.
    """
    starts, goals = scenario
    check_agents(grid, starts, goals, place)
    return Row(name, len(grid), len(starts), grid, starts, goals)


def _grid_line(line: str, width: int, letters: tuple[str, str], place: str) -> str:
    if len(line) != width:
        raise InputError(f"{place}: {len(line)} cells, but the map is {width} wide; correct the line")
    free, blocked = letters
    if unknown := [letter for letter in line if letter not in free + blocked]:
        remedy = f"write {FREE[0]!r} for free and {BLOCKED[0]!r} for blocked"
        raise InputError(f"{place}: the letter {unknown[0]!r}; {remedy}")
    return "".join("." if letter in free else "H" for letter in line)


def _read_entry(line: str, place: str) -> tuple[str, tuple[int, int], Square, Square]:
    parts = line.rstrip().split("\t")
    if len(parts) != len(COLUMNS):
        raise InputError(f"{place}: {len(parts)} columns between tabs; give {len(COLUMNS)}: {', '.join(COLUMNS)}")
    numbers = []
    for name, part in zip(COLUMNS[2:8], parts[2:8], strict=True):
        numbers.append(_read_number(part, f"{place}: {name}"))
    width, height, start_x, start_y, goal_x, goal_y = numbers
    return parts[1], (width, height), (start_y, start_x), (goal_y, goal_x)


def _read_number(text: str, place: str) -> int:
    digits = text.strip()
    if not (digits.isdecimal() and len(digits) <= DIGITS):
        raise InputError(f"{place} is {digits!r:.40}; give a whole number of at most {DIGITS} digits")
    return int(digits)
