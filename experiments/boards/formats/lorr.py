"""Problems of the League of Robot Runners: a JSON file, and beside it a map, the starts, and tasks.

https://github.com/MAPF-Competition/Start-Kit. A cell is its number, row by row. Of the tasks the first are meant, one
for each robot in order, and of a task its first errand. Robots there turn, which takes a step; so their plans are not
read.
"""

from typing import Any, NamedTuple

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import make_whole
from lakewright.experiments.boards.formats.cells import Square, check_agents, pad_to_square
from lakewright.experiments.boards.formats.movingai import FREE, map_text

LETTERS, BLOCKED = f"{FREE}ES", "@T"  # free cells of its maps, with the places for goods, and others
PUNCTUAL = {  # no robot is ever late; since 2026 its programs ask for every field
    "seed": 0,
    "minDelay": 1,
    "maxDelay": 1,
    "eventModel": "bernoulli",
    "pDelay": 0.0,
    "durationModel": "uniform",
    "gaussMeanRatio": 0.5,
    "gaussStdRatio": 0.0,
}
FILES = ("mapFile", "agentFile", "taskFile")


class LeagueProblem(NamedTuple):
    """The names of a problem's files in the order of FILES, and the number of robots."""

    files: tuple[str, str, str]
    robots: int


def problem_files(row: Row, stem: str) -> dict[str, str]:
    """The texts of the files of a board, by their endings."""
    named = dict(zip(FILES, (f"{stem}.map", f"{stem}.agents", f"{stem}.tasks"), strict=True))
    problem = {**named, "teamSize": row.agents, "numTasksReveal": 1, "taskAssignmentStrategy": "roundrobin"}
    problem["delayConfig"] = PUNCTUAL
    cells = ([line * row.size + column for line, column in ends] for ends in (row.starts, row.goals))
    starts, goals = ("\n".join(map(str, [row.agents, *numbers])) + "\n" for numbers in cells)
    whole = msgspec.json.format(msgspec.json.encode(problem), indent=4).decode() + "\n"
    return {".json": whole, ".map": map_text(row), ".agents": starts, ".tasks": goals}


def read_problem(text: str, place: str) -> LeagueProblem:
    """Reads the names in a problem file. Raises InputError with the field, the value and the remedy."""
    try:
        data: Any = make_whole(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error}); correct the file") from error
    files: list[Any] = [data.get(name) for name in FILES] if isinstance(data, dict) else [None] * 3
    for name, value in zip(FILES, files, strict=True):
        if not isinstance(value, str):
            raise InputError(f"{place}: {name} is {value!r:.40}; name a file, as problems of the league do")
    robots = data.get("teamSize")
    if isinstance(robots, bool) or not isinstance(robots, int) or robots < 1:
        raise InputError(f"{place}: teamSize is {robots!r:.40}; give a whole number from 1")
    return LeagueProblem((files[0], files[1], files[2]), robots)


def read_cells(text: str, count: int, width: int, place: str) -> list[Square]:
    """The first cells of a file of starts or of tasks: of each line the first one.

    Args:
        text: the file's text.
        count: how many cells.
        width: columns of the map.
        place: the file for the message.

    Raises InputError with the line, the value and the remedy.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if len(lines) <= count:
        raise InputError(
            f"{place}: {max(0, len(lines) - 1)} cells for {count} robots; give their number, and a cell for each"
        )
    cells = []
    for number, line in lines[1 : 1 + count]:
        first = line.partition(",")[0].strip()
        if not (first.isdecimal() and len(first) <= 9):
            raise InputError(f"{place}:{number}: {line!r:.40} is not the number of a cell; give row x {width} + column")
        cells.append(divmod(int(first), width))
    return cells


def make_row(grid: list[str], starts: list[Square], goals: list[Square], name: str, place: str) -> Row:
    """The row of a problem.

    Args:
        grid: the rows of the map, `.` and `H`, a rectangle.
        starts, goals: one for each robot.
        name: the id of the row.
        place: the file for the message.

    Raises InputError if they do not fit.
    """
    square = pad_to_square(grid)
    check_agents(square, starts, goals, place)
    return Row(name, len(square), len(starts), square, starts, goals)
