"""Paths as EECBS, and CBSH2 and MAPF-LNS by the same authors, write them with `--outputPaths`.

A line for each agent, `Agent 0: (0,1)->(0,2)->`, with the row first. Map and goals are in the scenario beside it, of
which the first agents are meant, as many as there are lines.
"""

import re

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.experiments.boards.formats.cells import Square, check_agents, path_of, write_moves

_LINE = re.compile(r"Agent (\d{1,6}): *(.*)")
_CELL = re.compile(r"\((\d{1,6}), *(\d{1,6})\)(?:->)?")


def paths_text(row: Row) -> str:
    """The plan of a board, each path up to its last arrival. Raises InputError if the row has no plan."""
    if row.plan is None:
        raise InputError(f"{row.id!r:.60} has no plan to write as paths; solve the rows first")
    lines = []
    for agent, (start, moves) in enumerate(zip(row.starts, row.plan, strict=True)):
        cells = "".join(f"({line},{column})->" for line, column in path_of(start, moves.rstrip("W")))
        lines.append(f"Agent {agent}: {cells}")
    return "\n".join(lines) + "\n"


def read_paths(text: str, place: str) -> list[list[Square]]:
    """The path of each agent. Raises InputError with the line, the value and the remedy."""
    paths: list[list[Square]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or int(match[1]) != len(paths):
            raise InputError(
                f"{place}:{number}: {line!r:.40} is out of place; give `Agent {len(paths)}: (row,column)->`"
            )
        cells = [(int(row), int(column)) for row, column in _CELL.findall(match[2])]
        if _CELL.sub("", match[2]).strip() or not cells:
            raise InputError(f"{place}:{number}: {match[2]!r:.40} are not cells; write (row,column)->(row,column)->")
        paths.append(cells)
    if not paths:
        raise InputError(f"{place}: no line `Agent 0: (row,column)->`; the solver found no plan")
    return paths


def make_row(
    paths: list[list[Square]], grid: list[str], ends: tuple[list[Square], list[Square]], name: str, place: str
) -> Row:
    """A board with the plan that a solver found for it, to be judged by `verify`.

    Args:
        paths: one for each agent.
        grid: the rows of its map, `.` and `H`.
        ends: starts and goals of these agents, or of more agents.
        name: the id of the row.
        place: the file for the message.

    Raises InputError if they do not fit.
    """
    starts, goals = (list(cells[: len(paths)]) for cells in ends)
    if len(starts) < len(paths):
        raise InputError(
            f"{place}: {len(paths)} paths, but its scenario has {len(starts)} agents; name the right scenario"
        )
    for agent, (path, start) in enumerate(zip(paths, starts, strict=True)):
        if path[0] != start:
            raise InputError(
                f"{place}: agent {agent} begins at {list(path[0])}, but starts at {list(start)}; a path begins there"
            )
    check_agents(grid, starts, goals, place)
    plan = [write_moves(path, f"{place}: agent {agent}") for agent, path in enumerate(paths)]
    return Row(name, len(grid), len(paths), grid, starts, goals, plan=plan)
