"""A plan that moves: the board once, with its agents as parts of their own that a script, or the file itself, moves."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from lakewright.core_jax.rows import Row
from lakewright.core_jax.types import DELTAS, MOVES
from lakewright.experiments.environments.lake import problem_of
from lakewright.experiments.loop.records.stage_records import Example
from lakewright.experiments.viewer.charts.frame import escape_text
from lakewright.experiments.viewer.pictures import board_art as art
from lakewright.experiments.viewer.pictures.board_art import CELL, FONT, PAPER

Square = tuple[int, int]
SECONDS = 0.7  # a step of the file that moves by itself
PAUSE = 2  # steps that its last picture stays
EDGE = 3  # around the board
LONGEST_NAME = 160
WAITS = f'<g class="waits" visibility="hidden">{art.draw_badge()}</g>'  # shown by the player


class Ending(NamedTuple):
    """The time at which a plan is done or fails, whether it is valid, the agents concerned, and what happened."""

    step: int
    valid: bool
    agents: list[int]
    words: str


def make_example(row: Row, plan: list[str], failure: str = "none", agent: int = -1, step: int = -1) -> Example:
    """A plan for a board as a thing to show.

    Args:
        row: the board.
        plan: the moves of each agent.
        failure: `none` of a valid plan.
        agent, step: the agent and the step at which it fails.
    """
    return Example(problem_of(row), "", failure, step, {"plan": plan, "agent": agent})


def find_positions(row: Row, plan: list[str], step: int) -> list[Square]:
    """The cell of every agent after `step` moves. An agent that would leave, jumps, or has no moves left stays."""
    return [_walk(row, agent, letters_of(plan, agent)[:step]) for agent in range(row.agents)]


def letters_of(plan: list[str], agent: int) -> str:
    """The moves of an agent; empty if the plan is too short for it."""
    return plan[agent] if agent < len(plan) else ""


def list_waiting(row: Row, plan: list[str], step: int) -> list[int]:
    """The agents whose last move before time `step` was a wait, except those who stay on their goals."""
    waits = [agent for agent in range(row.agents) if letters_of(plan, agent)[:step][step - 1 :] == "W"]
    return [agent for agent in waits if step <= find_arrival(row, plan, agent)]


def find_arrival(row: Row, plan: list[str], agent: int) -> int:
    """The time from which an agent is on its goal for good; the length of its moves if it never is."""
    letters = letters_of(plan, agent)
    parked = letters.rstrip("W")
    return len(parked if _walk(row, agent, letters) == row.goals[agent] else letters)


def describe_ending(example: Example) -> Ending:
    """The ending of a plan."""
    row, plan, failure = example.row, example.plan, example.failure
    if failure == "none":
        return _describe_arrival(row, plan)
    if failure == "parse_error" or not 0 <= example.agent < row.agents:
        return Ending(0, False, [], f"{failure.replace('_', ' ')}: no plan could be read from the answer.")
    whole = max(map(len, plan), default=0)
    step = whole if failure == "goal_not_reached" else max(0, min(example.place + 1, whole))
    agents = _list_concerned(row, plan, step, failure, example.agent)
    return Ending(step, False, agents, f"Fails at t = {step}: {_describe_failure(row, plan, step, failure, agents)}.")


def _walk(row: Row, agent: int, letters: str) -> Square:
    line, column = row.starts[agent]
    for letter in letters:
        down, right = DELTAS[MOVES.index(letter)] if letter in MOVES else (0, 0)
        line = min(max(line + down, 0), row.size - 1)
        column = min(max(column + right, 0), row.size - 1)
    return line, column


def _describe_arrival(row: Row, plan: list[str]) -> Ending:
    step = max(find_arrival(row, plan, agent) for agent in range(row.agents))
    waits = sum(len(list_waiting(row, plan, time)) for time in range(1, step + 1))
    words = f"All agents are at their goals at t = {step}, after {waits} wait{'s' * (waits != 1)} on the way."
    return Ending(step, True, [], words)


def _list_concerned(row: Row, plan: list[str], step: int, failure: str, first: int) -> list[int]:
    before, after = find_positions(row, plan, step - 1), find_positions(row, plan, step)
    others = [agent for agent in range(row.agents) if agent != first]
    if failure == "vertex_conflict":
        return [first, *(agent for agent in others if after[agent] == after[first])]
    if failure == "swap_conflict":
        swapped = (after[first], before[first])
        return [first, *(agent for agent in others if (before[agent], after[agent]) == swapped)]
    return [first]


def _describe_failure(row: Row, plan: list[str], step: int, failure: str, agents: list[int]) -> str:
    names, cell = " and ".join(f"A{agent}" for agent in agents), find_positions(row, plan, step)[agents[0]]
    if failure == "illegal_move":
        jumps = letters_of(plan, agents[0])[step - 1 : step] not in MOVES
        return f"{names} jumps from {cell} to a cell that is not a neighbour" if jumps else f"{names} leaves the board"
    if failure == "goal_not_reached":
        return f"the plan is over and {names} is at {cell}, its goal at {row.goals[agents[0]]}"
    if failure == "swap_conflict":
        return f"{names} swap {find_positions(row, plan, step - 1)[agents[0]]} and {cell}"
    doing = {"hole": "steps into the hole", "vertex_conflict": "meet"}.get(failure, failure.replace("_", " "))
    return f"{names} {doing} at {cell}"


class Played(msgspec.Struct, frozen=True):
    """All that a player needs: the picture, the cell of every agent at each time, who waits, and how the plan ends.

    cells: [agents][times] of (row, column). waits: the agents that waited, for each time. alarmed: the agents that
    fail at the last time.
    """

    svg: str
    cells: list[list[Square]]
    waits: list[list[int]]
    valid: bool
    alarmed: list[int]
    words: str

    @property
    def steps(self) -> int:
        """The last time."""
        return len(self.waits) - 1


def draw_played(example: Example) -> Played:
    """A plan with its moves. Raises InputError if the board is too large."""
    art.check_drawable(example.row.size)
    row, plan, end = example.row, example.plan, describe_ending(example)
    times = range(end.step + 1)
    cells = [list(path) for path in zip(*(find_positions(row, plan, time) for time in times), strict=True)]
    waits = [list_waiting(row, plan, time) for time in times]
    return Played(_draw_board(row, cells, end, _draw_bodies(row)), cells, waits, end.valid, end.agents, end.words)


def still_svg(row: Row) -> str:
    """A board with its agents at their starts. Raises InputError if it is too large."""
    art.check_drawable(row.size)
    owners = {cell: [agent] for agent, cell in enumerate(row.goals)}
    agents = (
        place_at(cell, art.draw_body(agent) + art.draw_plates([agent], owners.get(cell, [])))
        for agent, cell in enumerate(row.starts)
    )
    return _wrap_svg(row, "".join([*draw_ground(row), *_draw_goals(row), *agents]), f"board {row.id}")


def moving_svg(example: Example) -> str:
    """A plan as an SVG file that moves by itself, over and over."""
    found = draw_played(example)
    bodies = [f"<g>{_animate_moves(path)}{_draw_body(agent)}</g>" for agent, path in enumerate(found.cells)]
    return _draw_board(example.row, found.cells, describe_ending(example), bodies)


def _draw_board(row: Row, cells: Sequence[Sequence[Square]], end: Ending, bodies: Sequence[str]) -> str:
    paths = (_draw_path(agent, path) for agent, path in enumerate(cells))
    alarms = (f'<g class="failing">{place_at(cells[agent][-1], art.draw_alarm())}</g>' for agent in end.agents)
    return _wrap_svg(
        row, "".join([*draw_ground(row), *paths, *_draw_goals(row), *alarms, *bodies]), f"board {row.id}: {end.words}"
    )


def _draw_bodies(row: Row) -> list[str]:
    return [
        f'<g class="agent" transform="translate({_middle(column)} {_middle(line)})">{_draw_body(agent)}{WAITS}</g>'
        for agent, (line, column) in enumerate(row.starts)
    ]


def _draw_body(agent: int) -> str:
    return art.draw_body(agent) + art.draw_plates([agent], [])


def draw_ground(row: Row, *places: Sequence[Square]) -> Iterator[str]:
    """Holes, ice, and the cells of goals and of other `places` of agents in their colours."""
    owners = {cell: agent for cells in (row.goals, *places) for agent, cell in enumerate(cells)}
    for line, letters in enumerate(row.grid):
        for column, letter in enumerate(letters):
            cell = line, column
            yield place_at(
                cell,
                art.draw_hole() if letter == "H" else art.draw_tint(owners[cell]) if cell in owners else art.draw_ice(),
            )


def _draw_goals(row: Row) -> Iterator[str]:
    for agent, cell in enumerate(row.goals):
        yield place_at(cell, art.draw_gift(agent) + art.draw_plates([], [agent]))


def _draw_path(agent: int, path: Sequence[Square]) -> str:
    """The way of an agent, a little to the side of others'."""
    aside = 3 * (agent % 5) - 6
    points = " ".join(f"{_middle(column) + aside},{_middle(line) + aside}" for line, column in path)
    look = f'fill="none" stroke="{art.colour_of(agent)}" stroke-width="4" stroke-linejoin="round" opacity=".45"'
    return f'<polyline class="path" points="{points}" {look} stroke-linecap="round"/>'


def _animate_moves(path: Sequence[Square]) -> str:
    stops = [*path, *[path[-1]] * PAUSE]
    values = ";".join(f"{_middle(column)} {_middle(line)}" for line, column in stops)
    if len(stops) < 2:
        stops, values = [*stops, stops[-1]], f"{values};{values}"
    time = f'dur="{SECONDS * (len(stops) - 1):g}s" repeatCount="indefinite"'
    return f'<animateTransform attributeName="transform" type="translate" values="{values}" {time}/>'


def place_at(cell: Square, parts: str) -> str:
    """Parts of a picture in the middle of a cell."""
    return f'<g transform="translate({_middle(cell[1])} {_middle(cell[0])})">{parts}</g>'


def _middle(place: int) -> int:
    return CELL * place + CELL // 2


def _wrap_svg(row: Row, parts: str, words: str) -> str:
    side = row.size * CELL + 2 * EDGE
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-EDGE} {-EDGE} {side} {side}" class="board" role="img"'
    )
    named = f'{opening} aria-label="{escape_text(words[:LONGEST_NAME])}" {FONT}'
    paper = f'<rect x="{-EDGE}" y="{-EDGE}" width="{side}" height="{side}" rx="6" fill="{PAPER}"/>'
    return f"{named}>{paper}{parts}</svg>"
