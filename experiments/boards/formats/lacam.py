"""Result files of LaCAM and mapf-visualizer: https://github.com/Kei18/mapf-visualizer.

Lines `name=value`, then `solution=` and for each time a line `t:(x,y),(x,y),` with x the column. The map lies
beside it, by the name in `map_file`.
"""

import re

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.experiments.boards.formats.cells import Square, check_agents, path_of, write_moves

_CELL = re.compile(r"\((\d{1,6}),(\d{1,6})\),?")


def result_text(row: Row, map_name: str) -> str:
    """A board with its plan as the result of a solver. Raises InputError if the row has no plan."""
    if row.plan is None:
        raise InputError(f"{row.id!r:.60} has no plan to write as a result; solve the rows first")
    plan = [moves.rstrip("W") for moves in row.plan]
    costs = [len(moves) for moves in plan]
    paths = [path_of(start, moves.ljust(max(costs), "W")) for start, moves in zip(row.starts, plan, strict=True)]
    head = {
        "agents": row.agents,
        "map_file": map_name,
        "solver": "lakewright",
        "solved": 1,
        "soc": sum(costs),
        "makespan": max(costs),
        "starts": _write_line(row.starts),
        "goals": _write_line(row.goals),
        "solution": "",
    }
    lines = [f"{name}={value}" for name, value in head.items()]
    lines += [f"{time}:{_write_line([path[time] for path in paths])}" for time in range(max(costs) + 1)]
    return "\n".join(lines) + "\n"


def map_of(text: str, place: str) -> str:
    """The name of the map that a result is on. Raises InputError if missing."""
    named = re.search(r"^map_file=(.+)$", text, re.MULTILINE)
    if named is None:
        raise InputError(f"{place}: no line `map_file=`; name the map, which lies beside the result")
    return named[1].strip()


def read_result(text: str, grid: list[str], name: str, place: str) -> Row:
    """A board with the plan that a solver found for it, to be judged by `verify`.

    A plan that stops early, leaves the map or meets another agent is read all the same: the verdict says so.

    Args:
        text: The result file.
        grid: The rows of its map, `.` and `H`.
        name: The id of the row.
        place: The file for the message.

    Raises InputError with the line, the value and the remedy if the file is not a result.
    """
    fields, times = _split_parts(text, place)
    if not times:
        raise InputError(f"{place}: no line `0:(x,y),...` after `solution=`; the solver found no plan")
    counts = {len(cells) for _, cells in times}
    if len(counts) > 1:
        line = next(number for number, cells in times if len(cells) != len(times[0][1]))
        raise InputError(
            f"{place}:{line}: the number of agents differs from time 0 ({len(times[0][1])}); complete the line"
        )
    starts = _read_cells(fields["starts"], f"{place}: starts") if "starts" in fields else times[0][1]
    goals = _read_cells(fields["goals"], f"{place}: goals") if "goals" in fields else times[-1][1]
    for named, cells in (("starts", starts), ("goals", goals)):
        if len(cells) != len(times[0][1]):
            raise InputError(f"{place}: {len(cells)} {named} for {len(times[0][1])} agents; give one for each agent")
    if starts != times[0][1]:
        raise InputError(f"{place}:{times[0][0]}: time 0 is not at the starts; a plan begins there")
    check_agents(grid, starts, goals, place)
    paths = zip(*(cells for _, cells in times), strict=True)
    plan = [write_moves(path, f"{place}: agent {agent}") for agent, path in enumerate(paths)]
    return Row(name, len(grid), len(starts), grid, starts, goals, plan=plan)


def _write_line(cells: list[Square]) -> str:
    return "".join(f"({column},{row})," for row, column in cells)


def _split_parts(text: str, place: str) -> tuple[dict[str, str], list[tuple[int, list[Square]]]]:
    """The fields before the solution, and number and cells of each of its lines."""
    fields: dict[str, str] = {}
    times: list[tuple[int, list[Square]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line:
            continue
        if "solution" in fields:
            time, mark, cells = line.partition(":")
            if not mark or time != str(len(times)):
                raise InputError(f"{place}:{number}: {line!r:.40} is out of place; give `{len(times)}:(x,y),...`")
            times.append((number, _read_cells(cells, f"{place}:{number}")))
        else:
            name, mark, value = line.partition("=")
            if not mark:
                raise InputError(f"{place}:{number}: {line!r:.40} is not `name=value`; this is not a result file")
            fields[name.strip()] = value.strip()
    return fields, times


def _read_cells(text: str, place: str) -> list[Square]:
    cells = [(int(y), int(x)) for x, y in _CELL.findall(text)]
    if _CELL.sub("", text).strip() or not cells:
        raise InputError(f"{place}: {text!r:.40} are not cells; write (x,y),(x,y), with x the column")
    return cells
