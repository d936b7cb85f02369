"""A plan that moves: the board once, with its agents as parts of their own that a script, or the file itself, moves."""

from collections.abc import Iterator, Sequence

import msgspec

from lakewright.core_jax.rows import Row
from lakewright.experiments.charts.frame import escape_text
from lakewright.experiments.loop.records.stage_records import Example
from lakewright.experiments.view.pictures import board_art as art
from lakewright.experiments.view.pictures.board_art import CELL, FONT, PAPER
from lakewright.experiments.view.pictures.replay import Cell, Ending, ending, positions, waiting

SECONDS = 0.7  # a step of the file that moves by itself
PAUSE = 2  # steps that its last picture stays
EDGE = 3  # around the board
LONGEST_NAME = 160
WAITS = f'<g class="waits" visibility="hidden">{art.badge()}</g>'  # shown by the player


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


def played(example: Example) -> Played:
    """A plan with what moves it. Raises InputError where the board is too large."""
    art.check_drawable(example.row.size)
    row, plan, end = example.row, example.plan, ending(example)
    times = range(end.step + 1)
    cells = [list(path) for path in zip(*(positions(row, plan, time) for time in times), strict=True)]
    waits = [waiting(row, plan, time) for time in times]
    return Played(_board(row, cells, end, _bodies(row)), cells, waits, end.valid, end.agents, end.words)


def still_svg(row: Row) -> str:
    """A board with its agents at their starts. Raises InputError where it is too large."""
    art.check_drawable(row.size)
    owners = {cell: [agent] for agent, cell in enumerate(row.goals)}
    agents = (
        _placed(cell, art.body(agent) + art.plates([agent], owners.get(cell, [])))
        for agent, cell in enumerate(row.starts)
    )
    return _svg(row, "".join([*_ground(row), *_goals(row), *agents]), f"board {row.id}")


def moving_svg(example: Example) -> str:
    """A plan as an SVG file that moves by itself, over and over."""
    found = played(example)
    bodies = [f"<g>{_moves(path)}{_body(agent)}</g>" for agent, path in enumerate(found.cells)]
    return _board(example.row, found.cells, ending(example), bodies)


def _board(row: Row, cells: Sequence[Sequence[Cell]], end: Ending, bodies: Sequence[str]) -> str:
    paths = (_path(agent, path) for agent, path in enumerate(cells))
    alarms = (f'<g class="failing">{_placed(cells[agent][-1], art.alarm())}</g>' for agent in end.agents)
    return _svg(row, "".join([*_ground(row), *paths, *_goals(row), *alarms, *bodies]), f"board {row.id}: {end.words}")


def _bodies(row: Row) -> list[str]:
    return [
        f'<g class="agent" transform="translate({_middle(column)} {_middle(line)})">{_body(agent)}{WAITS}</g>'
        for agent, (line, column) in enumerate(row.starts)
    ]


def _body(agent: int) -> str:
    return art.body(agent) + art.plates([agent], [])


def _ground(row: Row) -> Iterator[str]:
    owners = {cell: agent for agent, cell in enumerate(row.goals)}
    for line, letters in enumerate(row.grid):
        for column, letter in enumerate(letters):
            cell = line, column
            yield _placed(
                cell, art.hole() if letter == "H" else art.tint(owners[cell]) if cell in owners else art.ice()
            )


def _goals(row: Row) -> Iterator[str]:
    for agent, cell in enumerate(row.goals):
        yield _placed(cell, art.gift(agent) + art.plates([], [agent]))


def _path(agent: int, path: Sequence[Cell]) -> str:
    """The way of an agent, a little to the side of that of others."""
    aside = 3 * (agent % 5) - 6
    points = " ".join(f"{_middle(column) + aside},{_middle(line) + aside}" for line, column in path)
    look = f'fill="none" stroke="{art.colour_of(agent)}" stroke-width="4" stroke-linejoin="round" opacity=".45"'
    return f'<polyline class="path" points="{points}" {look} stroke-linecap="round"/>'


def _moves(path: Sequence[Cell]) -> str:
    stops = [*path, *[path[-1]] * PAUSE]
    values = ";".join(f"{_middle(column)} {_middle(line)}" for line, column in stops)
    if len(stops) < 2:
        stops, values = [*stops, stops[-1]], f"{values};{values}"
    time = f'dur="{SECONDS * (len(stops) - 1):g}s" repeatCount="indefinite"'
    return f'<animateTransform attributeName="transform" type="translate" values="{values}" {time}/>'


def _placed(cell: Cell, parts: str) -> str:
    return f'<g transform="translate({_middle(cell[1])} {_middle(cell[0])})">{parts}</g>'


def _middle(place: int) -> int:
    return CELL * place + CELL // 2


def _svg(row: Row, parts: str, words: str) -> str:
    side = row.size * CELL + 2 * EDGE
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-EDGE} {-EDGE} {side} {side}" class="board" role="img"'
    )
    named = f'{opening} aria-label="{escape_text(words[:LONGEST_NAME])}" {FONT}'
    paper = f'<rect x="{-EDGE}" y="{-EDGE}" width="{side}" height="{side}" rx="6" fill="{PAPER}"/>'
    return f"{named}>{paper}{parts}</svg>"
