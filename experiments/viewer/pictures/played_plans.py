"""A plan that moves: the board once, with its agents as parts of their own that a script, or the file itself, moves."""

from collections.abc import Iterator, Sequence

import msgspec

from lakewright.core_jax.rows import Row
from lakewright.experiments.loop.records.stage_records import Example
from lakewright.experiments.viewer.charts.frame import escape_text
from lakewright.experiments.viewer.pictures import board_art as art
from lakewright.experiments.viewer.pictures.board_art import CELL, FONT, PAPER
from lakewright.experiments.viewer.pictures.replay import Cell, Ending, describe_ending, find_positions, list_waiting

SECONDS = 0.7  # a step of the file that moves by itself
PAUSE = 2  # steps that its last picture stays
EDGE = 3  # around the board
LONGEST_NAME = 160
WAITS = f'<g class="waits" visibility="hidden">{art.draw_badge()}</g>'  # shown by the player


class Played(msgspec.Struct, frozen=True):
    """All that a player needs: the picture, the cell of every agent at each time, who waits, and how the plan ends.

    cells: [agents][times] of (row, column). waits: the agents that waited, for each time. alarmed: the agents that
    fail at the last time.
    """

    svg: str
    cells: list[list[Cell]]
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
        _place_at(cell, art.draw_body(agent) + art.draw_plates([agent], owners.get(cell, [])))
        for agent, cell in enumerate(row.starts)
    )
    return _wrap_svg(row, "".join([*_draw_ground(row), *_draw_goals(row), *agents]), f"board {row.id}")


def moving_svg(example: Example) -> str:
    """A plan as an SVG file that moves by itself, over and over."""
    found = draw_played(example)
    bodies = [f"<g>{_animate_moves(path)}{_draw_body(agent)}</g>" for agent, path in enumerate(found.cells)]
    return _draw_board(example.row, found.cells, describe_ending(example), bodies)


def _draw_board(row: Row, cells: Sequence[Sequence[Cell]], end: Ending, bodies: Sequence[str]) -> str:
    paths = (_draw_path(agent, path) for agent, path in enumerate(cells))
    alarms = (f'<g class="failing">{_place_at(cells[agent][-1], art.draw_alarm())}</g>' for agent in end.agents)
    return _wrap_svg(
        row, "".join([*_draw_ground(row), *paths, *_draw_goals(row), *alarms, *bodies]), f"board {row.id}: {end.words}"
    )


def _draw_bodies(row: Row) -> list[str]:
    return [
        f'<g class="agent" transform="translate({_middle(column)} {_middle(line)})">{_draw_body(agent)}{WAITS}</g>'
        for agent, (line, column) in enumerate(row.starts)
    ]


def _draw_body(agent: int) -> str:
    return art.draw_body(agent) + art.draw_plates([agent], [])


def _draw_ground(row: Row) -> Iterator[str]:
    owners = {cell: agent for agent, cell in enumerate(row.goals)}
    for line, letters in enumerate(row.grid):
        for column, letter in enumerate(letters):
            cell = line, column
            yield _place_at(
                cell,
                art.draw_hole() if letter == "H" else art.draw_tint(owners[cell]) if cell in owners else art.draw_ice(),
            )


def _draw_goals(row: Row) -> Iterator[str]:
    for agent, cell in enumerate(row.goals):
        yield _place_at(cell, art.draw_gift(agent) + art.draw_plates([], [agent]))


def _draw_path(agent: int, path: Sequence[Cell]) -> str:
    """The way of an agent, a little to the side of others'."""
    aside = 3 * (agent % 5) - 6
    points = " ".join(f"{_middle(column) + aside},{_middle(line) + aside}" for line, column in path)
    look = f'fill="none" stroke="{art.colour_of(agent)}" stroke-width="4" stroke-linejoin="round" opacity=".45"'
    return f'<polyline class="path" points="{points}" {look} stroke-linecap="round"/>'


def _animate_moves(path: Sequence[Cell]) -> str:
    stops = [*path, *[path[-1]] * PAUSE]
    values = ";".join(f"{_middle(column)} {_middle(line)}" for line, column in stops)
    if len(stops) < 2:
        stops, values = [*stops, stops[-1]], f"{values};{values}"
    time = f'dur="{SECONDS * (len(stops) - 1):g}s" repeatCount="indefinite"'
    return f'<animateTransform attributeName="transform" type="translate" values="{values}" {time}/>'


def _place_at(cell: Cell, parts: str) -> str:
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
