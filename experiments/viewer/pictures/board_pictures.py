"""Boards as SVG: a plan step by step, under a header bar with the id and the step."""

from collections.abc import Collection, Iterator

from lakewright.core_jax.rows import Row
from lakewright.core_jax.types import DELTAS, MOVES
from lakewright.experiments.loop.records.stage_records import Example
from lakewright.experiments.viewer.charts.frame import escape_text
from lakewright.experiments.viewer.pictures import board_art as art
from lakewright.experiments.viewer.pictures.board_art import CELL, FONT, INK, PAPER, SOFT
from lakewright.experiments.viewer.pictures.played_plans import (
    Ending,
    describe_ending,
    draw_ground,
    find_positions,
    letters_of,
    list_waiting,
    place_at,
)

GUTTER, BAR, GAP = 16, 26, 12  # around a board, for its row and column numbers; a header bar; between frames
MOST_FRAMES = 12
LEAST_WIDTH = 560  # of a strip, for its title
LONGEST_TITLE = 48
FAILED, AT_GOALS = "#a5102a", "#00664a"


def board_svg(
    row: Row, plan: list[str], step: int, *, title: str = "", last: Ending | None = None, alarmed: Collection[int] = ()
) -> str:
    """The board after `step` moves of `plan`: lines show where agents came from, badges W who waited.

    Args:
        row: the board.
        plan: the moves of each agent.
        step: the time, from 0.
        title: a text above the step in the header bar, such as the id.
        last: the ending, of the last frame of a plan.
        alarmed: agents whose cells are framed.

    Raises InputError if the board is too large.
    """
    art.check_drawable(row.size)
    bar = 2 * BAR - 6 if title else BAR
    side = _side_length(row)
    cells = "".join(
        [
            *draw_ground(row, find_positions(row, plan, step)),
            *_draw_trails(row, plan, step),
            *_draw_things(row, plan, step, alarmed),
        ]
    )
    board = f'<g transform="translate({GUTTER} {bar + GUTTER})">{_draw_numbers(row)}{cells}</g>'
    return _wrap_svg(
        side, side + bar, _describe_cells(row, plan, step), _draw_header(side, bar, title, step, last) + board
    )


def strip_svg(example: Example, columns: int = 6) -> str:
    """The frames of a plan in one picture, at most `columns` in a row, under a header bar that says how it ends."""
    pictures, side, words = draw_frames(example), _side_length(example.row), write_caption(example)
    rows = -(-len(pictures) // columns)
    columns = -(-len(pictures) // rows)
    width, high = max(LEAST_WIDTH, columns * (side + GAP) + GAP), side + BAR + GAP
    title = art.draw_label(GAP, 18, words, width - 2 * GAP, 14, PAPER, "start")
    placed = "".join(
        _translate(GAP + n % columns * (side + GAP), BAR + GAP + n // columns * high, picture)
        for n, picture in enumerate(pictures)
    )
    height = BAR + GAP + rows * high
    card = f'<rect width="{width}" height="{height}" rx="5" fill="{PAPER}"/>{_draw_bar(width, BAR, INK)}'
    return _wrap_svg(width, height, words, card + title + placed)


def draw_frames(example: Example) -> list[str]:
    """The plan step by step, its last frame marked; of a long plan the middle is left out."""
    row, plan, end = example.row, example.plan, describe_ending(example)
    pictures = [board_svg(row, plan, step) for step in steps_shown(end.step)[:-1]]
    return [*pictures, board_svg(row, plan, end.step, last=end, alarmed=end.agents)]


def write_caption(example: Example) -> str:
    """The id, how the plan ends, and which frames are left out."""
    end = describe_ending(example)
    shown = steps_shown(end.step)
    skipped = [step for step in range(end.step) if step not in shown]
    rest = f" Not drawn: t = {skipped[0]} to {skipped[-1]}." if skipped else ""
    return f"{_shorten(example.row.id)} · {end.words}{rest}"


def steps_shown(last: int) -> list[int]:
    """All steps from 0 to `last`, or the first and the last of them, MOST_FRAMES together."""
    half = MOST_FRAMES // 2
    return [step for step in range(last + 1) if last < MOST_FRAMES or step < half or step > last - half]


def _draw_header(side: int, bar: int, title: str, step: int, last: Ending | None) -> str:
    colour, outcome = INK, ""
    if last:
        colour, outcome = (AT_GOALS, " · at goals") if last.valid else (FAILED, " · failed")
    lines = art.draw_label(side / 2, bar - 8, f"t = {step}{outcome}", side - 8, 14, PAPER)
    if title:
        lines += art.draw_label(side / 2, 18, _shorten(title), side - 8, 14, PAPER)
    border = f'<rect x="1" y="1" width="{side - 2}" height="{side + bar - 2}" rx="5" fill="{PAPER}" stroke="{colour}"'
    return f'{border} stroke-width="{3 if last else 1}"/>{_draw_bar(side, bar, colour)}{lines}'


def _draw_numbers(row: Row) -> str:
    middles = [(str(n), CELL * n + CELL / 2) for n in range(row.size)]
    lines = (art.draw_label(-GUTTER / 2, middle + 4, name, GUTTER, 11, SOFT) for name, middle in middles)
    columns = (art.draw_label(middle, -4, name, CELL, 11, SOFT) for name, middle in middles)
    return "".join([*lines, *columns])


def _draw_trails(row: Row, plan: list[str], step: int) -> Iterator[str]:
    for agent, cell in enumerate(find_positions(row, plan, max(step - 1, 0))):
        letter = letters_of(plan, agent)[:step][step - 1 :]
        down, right = DELTAS[MOVES.index(letter)] if letter and letter in MOVES else (0, 0)
        if down or right:
            yield place_at(cell, art.draw_trail(agent, down, right))


def _draw_things(row: Row, plan: list[str], step: int, alarmed: Collection[int]) -> Iterator[str]:
    """Cells with agents, or a goal, or both: their figures, and below them a plate each."""
    now, waits = find_positions(row, plan, step), list_waiting(row, plan, step)
    for cell in dict.fromkeys([*row.goals, *now]):
        here = [agent for agent, place in enumerate(now) if place == cell]
        wanted = [agent for agent, goal in enumerate(row.goals) if goal == cell]
        parts = [*(_draw_bodies(here) if here else [art.draw_gift(wanted[0])]), art.draw_plates(here, wanted)]
        if set(here) & set(waits):
            parts.append(art.draw_badge())
        if set(here) & set(alarmed):
            parts.append(art.draw_alarm())
        yield place_at(cell, "".join(parts))


def _draw_bodies(agents: list[int]) -> Iterator[str]:
    for n, agent in enumerate(agents):
        yield _translate((n - (len(agents) - 1) / 2) * 18, 0, art.draw_body(agent))


def _describe_cells(row: Row, plan: list[str], step: int) -> str:
    places = (f"A{agent} at {cell}" for agent, cell in enumerate(find_positions(row, plan, step)))
    return f"{_shorten(row.id)} at t = {step}: {', '.join(places)}"


def _draw_bar(width: int, height: int, colour: str) -> str:
    return f'<rect width="{width}" height="{height}" rx="5" fill="{colour}"/>'


def _translate(right: float, down: float, parts: str) -> str:
    return f'<g transform="translate({right:g} {down:g})">{parts}</g>'


def _wrap_svg(width: int, height: int, described: str, parts: str) -> str:
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{escape_text(described)}" {FONT}>'
    return f"{opening}{parts}</svg>"


def _side_length(row: Row) -> int:
    return row.size * CELL + 2 * GUTTER


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"
