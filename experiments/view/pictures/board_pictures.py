"""Boards as SVG: a plan step by step, under a header bar with the id and the step."""

from collections.abc import Collection, Iterator

from lakewright.core_jax.rows import Row
from lakewright.core_jax.types import DELTAS, MOVES
from lakewright.experiments.charts.frame import escape_text
from lakewright.experiments.loop.records.stage_records import Example
from lakewright.experiments.view.pictures import board_art as art
from lakewright.experiments.view.pictures.board_art import CELL, FONT, INK, PAPER, SOFT
from lakewright.experiments.view.pictures.replay import Cell, Ending, ending, letters_of, positions, waiting

GUTTER, BAR, GAP = 16, 26, 12  # around a board, for its row and column numbers; a header bar; between frames
MOST_FRAMES = 12
LEAST_WIDTH = 560  # of a strip, for its title
LONGEST_TITLE = 48
FAILED, HOME = "#a5102a", "#00664a"


def board_svg(
    row: Row, plan: list[str], step: int, *, title: str = "", last: Ending | None = None, alarmed: Collection[int] = ()
) -> str:
    """The board after `step` moves of `plan`: lines show where agents came from, badges W who waited.

    `title`, such as the id, is shown in the header bar above the step. `last` marks the last frame of a plan, and a
    frame the cells of the agents `alarmed`. Raises InputError where the board is too large.
    """
    art.check_drawable(row.size)
    bar = 2 * BAR - 6 if title else BAR
    side = _side(row)
    cells = "".join([*_ground(row, plan, step), *_trails(row, plan, step), *_things(row, plan, step, alarmed)])
    board = f'<g transform="translate({GUTTER} {bar + GUTTER})">{_numbers(row)}{cells}</g>'
    return _svg(side, side + bar, _words(row, plan, step), _header(side, bar, title, step, last) + board)


def strip_svg(example: Example, columns: int = 6) -> str:
    """The frames of a plan in one picture, at most `columns` in a row, under a header bar that says how it ends."""
    pictures, side, words = frames(example), _side(example.row), caption(example)
    rows = -(-len(pictures) // columns)
    columns = -(-len(pictures) // rows)
    width, high = max(LEAST_WIDTH, columns * (side + GAP) + GAP), side + BAR + GAP
    title = art.label(GAP, 18, words, width - 2 * GAP, 14, PAPER, "start")
    placed = "".join(
        _moved(GAP + n % columns * (side + GAP), BAR + GAP + n // columns * high, picture)
        for n, picture in enumerate(pictures)
    )
    height = BAR + GAP + rows * high
    card = f'<rect width="{width}" height="{height}" rx="5" fill="{PAPER}"/>{_bar(width, BAR, INK)}'
    return _svg(width, height, words, card + title + placed)


def frames(example: Example) -> list[str]:
    """The plan step by step, its last frame marked; of a long plan the middle is left out."""
    row, plan, end = example.row, example.plan, ending(example)
    pictures = [board_svg(row, plan, step) for step in steps_shown(end.step)[:-1]]
    return [*pictures, board_svg(row, plan, end.step, last=end, alarmed=end.agents)]


def caption(example: Example) -> str:
    """The id, how the plan ends, and which frames are left out."""
    end = ending(example)
    shown = steps_shown(end.step)
    skipped = [step for step in range(end.step) if step not in shown]
    rest = f" Not drawn: t = {skipped[0]} to {skipped[-1]}." if skipped else ""
    return f"{_short(example.row.id)} · {end.words}{rest}"


def steps_shown(last: int) -> list[int]:
    """All steps from 0 to `last`, or the first and the last of them, MOST_FRAMES together."""
    half = MOST_FRAMES // 2
    return [step for step in range(last + 1) if last < MOST_FRAMES or step < half or step > last - half]


def _header(side: int, bar: int, title: str, step: int, last: Ending | None) -> str:
    colour, outcome = INK, ""
    if last:
        colour, outcome = (HOME, " · all home") if last.valid else (FAILED, " · failed")
    lines = art.label(side / 2, bar - 8, f"t = {step}{outcome}", side - 8, 14, PAPER)
    if title:
        lines += art.label(side / 2, 18, _short(title), side - 8, 14, PAPER)
    border = f'<rect x="1" y="1" width="{side - 2}" height="{side + bar - 2}" rx="5" fill="{PAPER}" stroke="{colour}"'
    return f'{border} stroke-width="{3 if last else 1}"/>{_bar(side, bar, colour)}{lines}'


def _numbers(row: Row) -> str:
    middles = [(str(n), CELL * n + CELL / 2) for n in range(row.size)]
    lines = (art.label(-GUTTER / 2, middle + 4, name, GUTTER, 11, SOFT) for name, middle in middles)
    columns = (art.label(middle, -4, name, CELL, 11, SOFT) for name, middle in middles)
    return "".join([*lines, *columns])


def _ground(row: Row, plan: list[str], step: int) -> Iterator[str]:
    owners = {cell: agent for cells in (row.goals, positions(row, plan, step)) for agent, cell in enumerate(cells)}
    for line, letters in enumerate(row.grid):
        for column, letter in enumerate(letters):
            cell = line, column
            yield _at(cell, art.hole() if letter == "H" else art.tint(owners[cell]) if cell in owners else art.ice())


def _trails(row: Row, plan: list[str], step: int) -> Iterator[str]:
    for agent, cell in enumerate(positions(row, plan, max(step - 1, 0))):
        letter = letters_of(plan, agent)[:step][step - 1 :]
        down, right = DELTAS[MOVES.index(letter)] if letter and letter in MOVES else (0, 0)
        if down or right:
            yield _at(cell, art.trail(agent, down, right))


def _things(row: Row, plan: list[str], step: int, alarmed: Collection[int]) -> Iterator[str]:
    """Cells with agents, or a goal, or both: their figures, and below them a plate each."""
    now, waits = positions(row, plan, step), waiting(row, plan, step)
    for cell in dict.fromkeys([*row.goals, *now]):
        here = [agent for agent, place in enumerate(now) if place == cell]
        wanted = [agent for agent, goal in enumerate(row.goals) if goal == cell]
        parts = [*(_bodies(here) if here else [art.gift(wanted[0])]), art.plates(here, wanted)]
        if set(here) & set(waits):
            parts.append(art.badge())
        if set(here) & set(alarmed):
            parts.append(art.alarm())
        yield _at(cell, "".join(parts))


def _bodies(agents: list[int]) -> Iterator[str]:
    for n, agent in enumerate(agents):
        yield _moved((n - (len(agents) - 1) / 2) * 18, 0, art.body(agent))


def _words(row: Row, plan: list[str], step: int) -> str:
    places = (f"A{agent} at {cell}" for agent, cell in enumerate(positions(row, plan, step)))
    return f"{_short(row.id)} at t = {step}: {', '.join(places)}"


def _bar(width: int, height: int, colour: str) -> str:
    return f'<rect width="{width}" height="{height}" rx="5" fill="{colour}"/>'


def _at(cell: Cell, parts: str) -> str:
    return _moved(cell[1] * CELL + CELL / 2, cell[0] * CELL + CELL / 2, parts)


def _moved(right: float, down: float, parts: str) -> str:
    return f'<g transform="translate({right:g} {down:g})">{parts}</g>'


def _svg(width: int, height: int, described: str, parts: str) -> str:
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{escape_text(described)}" {FONT}>'
    return f"{opening}{parts}</svg>"


def _side(row: Row) -> int:
    return row.size * CELL + 2 * GUTTER


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"
