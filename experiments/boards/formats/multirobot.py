"""libMultiRobotPlanning's YAML: https://github.com/whoenig/libMultiRobotPlanning.

`map` has `dimensions`, columns and rows, and `obstacles`, cells [x, y]; `agents` have a name, a start and a goal each.
The output of its solvers has a `schedule`: the cells of each agent by name, with x, y and t. Both may be one file,
which its solvers read as well: they look for what they need.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.experiments.boards.formats.cells import Square, check_agents, pad_to_square, path_of, write_moves

LARGEST = 1024  # cells on a side


def board_text(row: Row) -> str:
    """A board, and its plan if it has one."""
    lines = ["agents:"]
    for agent, ((y, x), (v, u)) in enumerate(zip(row.starts, row.goals, strict=True)):
        lines += [f"- name: agent{agent}", f"  start: [{x}, {y}]", f"  goal: [{u}, {v}]"]
    holes = [(x, y) for y, line in enumerate(row.grid) for x, letter in enumerate(line) if letter == "H"]
    lines += ["map:", f"  dimensions: [{row.size}, {row.size}]", "  obstacles:" if holes else "  obstacles: []"]
    lines += [f"  - [{x}, {y}]" for x, y in holes]
    if row.plan is not None:
        plan = [moves.rstrip("W") for moves in row.plan]
        costs = [len(moves) for moves in plan]
        lines += ["statistics:", f"  cost: {sum(costs)}", f"  makespan: {max(costs)}", "schedule:"]
        for agent, (start, moves) in enumerate(zip(row.starts, plan, strict=True)):
            lines.append(f"  agent{agent}:")
            lines += [f"  - {{x: {x}, y: {y}, t: {time}}}" for time, (y, x) in enumerate(path_of(start, moves))]
    return "\n".join(lines) + "\n"


def read_board(data: Any, schedule: Any, name: str, place: str) -> Row:
    """The board of a file, with the plan of its schedule.

    Args:
        data: the content of the file with the map, whose numbers are texts.
        schedule: the content of a file with only the schedule; None if `data` has the schedule, or no schedule exists.
        name: the id of the row.
        place: the file for the message.

    Raises InputError with the field, the value and the remedy.
    """
    if isinstance(data, Mapping) and "roadmap" in data:
        raise InputError(f"{place}: its map is a roadmap; give a `map` with `dimensions`, because boards are grids")
    if not isinstance(data, Mapping) or not isinstance(data.get("map"), Mapping):
        raise InputError(f"{place}: has no `map`; put the input of the solver beside it, see docs/formats.md")
    agents = data.get("agents")
    if not isinstance(agents, list) or not agents or not all(isinstance(agent, Mapping) for agent in agents):
        raise InputError(f"{place}: has no list of `agents`; give each a name, a start and a goal")
    grid = _read_grid(data["map"], place)
    starts, goals, names = [], [], []
    for number, agent in enumerate(agents):
        if missing := [field for field in ("start", "goal") if field not in agent]:
            raise InputError(f"{place}: agents[{number}] has no {missing[0]!r}; give its cell as [x, y]")
        starts.append(_read_cell(agent["start"], f"{place}: agents[{number}].start"))
        goals.append(_read_cell(agent["goal"], f"{place}: agents[{number}].goal"))
        names.append(str(agent.get("name", f"agent{number}")))
    check_agents(grid, starts, goals, place)
    plans = (schedule if isinstance(schedule, Mapping) else data).get("schedule")
    plan = None
    if plans is not None:
        named = zip(_choose_names(names, plans), starts, strict=True)
        plan = [_read_path(plans, agent, start, place) for agent, start in named]
    return Row(name, len(grid), len(agents), grid, starts, goals, plan=plan)


def _choose_names(names: Sequence[str], schedule: Any) -> list[str]:
    """The names of the agents in a schedule: their own, or, as the solvers write it, agent0, agent1 and so on."""
    numbered = [f"agent{number}" for number in range(len(names))]
    return numbered if isinstance(schedule, Mapping) and set(numbered) <= schedule.keys() else list(names)


def _read_grid(found: Mapping[str, Any], place: str) -> list[str]:
    width, height = _read_pair(found.get("dimensions"), f"{place}: map.dimensions")
    if not (0 < width <= LARGEST and 0 < height <= LARGEST):
        raise InputError(f"{place}: map.dimensions is {width} by {height}; choose 1 to {LARGEST}")
    lines = [["."] * width for _ in range(height)]
    obstacles = found.get("obstacles") or []
    if not isinstance(obstacles, list):
        raise InputError(f"{place}: map.obstacles is {obstacles!r:.40}; give a list of cells [x, y]")
    for number, cell in enumerate(obstacles):
        row, column = _read_cell(cell, f"{place}: map.obstacles[{number}]")
        if row >= height or column >= width:
            raise InputError(f"{place}: map.obstacles[{number}] is off the map of {width} by {height}; correct it")
        lines[row][column] = "H"
    return pad_to_square(["".join(line) for line in lines])


def _read_path(schedule: Any, name: str, start: Square, place: str) -> str:
    """The moves of an agent by its cells in a schedule."""
    steps = schedule.get(name) if isinstance(schedule, Mapping) else None
    if not isinstance(steps, list) or not steps:
        raise InputError(f"{place}: schedule has no cells of {name!r:.40}; give a list of x, y and t")
    path: list[Square] = []
    for time, step in enumerate(steps):
        at = f"{place}: schedule.{name:.40}[{time}]"
        if not isinstance(step, Mapping) or not {"x", "y"} <= step.keys():
            raise InputError(f"{at} is {step!r:.40}; give x, y and t")
        if _read_number(step.get("t", str(time)), f"{at}.t") != time:
            raise InputError(f"{at}.t is {step['t']}; give each time from 0 on")
        path.append((_read_number(step["y"], f"{at}.y"), _read_number(step["x"], f"{at}.x")))
    if path[0] != start:
        raise InputError(f"{place}: schedule.{name:.40} does not begin at the start of the agent; correct one of them")
    return write_moves(path, f"{place}: {name:.40}")


def _read_cell(value: Any, place: str) -> Square:
    x, y = _read_pair(value, place)
    return y, x


def _read_pair(value: Any, place: str) -> tuple[int, int]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise InputError(f"{place} is {value!r:.40}; give two numbers, x and y")
    return _read_number(value[0], place), _read_number(value[1], place)


def _read_number(value: Any, place: str) -> int:
    text = str(value).strip().removesuffix(".0")
    if not (text.isdecimal() and len(text) <= 6):
        raise InputError(f"{place} is {value!r:.40}; give a whole number of at most 6 digits")
    return int(text)
