"""The parts of a drawn board, as SVG about the middle of a cell: agents, goals, holes, plates, text."""

from lakewright.core_jax.errors import InputError
from lakewright.experiments.viewer.charts.frame import escape_text

MOST_SIDE = 64  # cells: the picture of a larger board takes hundreds of megabytes, in which nobody sees a cell
CELL = 40  # the side of a cell, in the units of a drawing
INK, PAPER, SOFT = "#1d2733", "#ffffff", "#55606c"
FONT = "font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\""
COLOURS = ("#d55e00", "#0072b2", "#b0578d", "#d99a00", "#5c6670")
TINTS = ("#fbdcc4", "#c4e0f3", "#f3d9e8", "#fbeabf", "#d9dde1")
GAP = 1.5  # between plates


def fits_picture(side: int) -> bool:
    """Return True if boards of `side` cells a side are drawn."""
    return side <= MOST_SIDE


def check_drawable(side: int) -> None:
    """Raises InputError if boards of `side` cells a side are not drawn."""
    if not fits_picture(side):
        raise InputError(f"the board has {side} cells a side, and pictures are drawn up to {MOST_SIDE}; take its row")


def colour_of(agent: int) -> str:
    """The colour of an agent and its goal."""
    return COLOURS[agent % len(COLOURS)]


def draw_ice() -> str:
    """A frozen cell."""
    return draw_square("#f1f7fb", "ice")


def draw_hole() -> str:
    """Water around an opening, which is darker, for those who see no colour."""
    opening = '<ellipse cy="1" rx="14" ry="11" fill="#16908f" stroke="#0d6f70" stroke-width="2"/>'
    return draw_square("#5fd0cb", "hole") + opening


def draw_tint(agent: int) -> str:
    """A cell in the colour of its agent, or of the agent whose goal it is."""
    return draw_square(TINTS[agent % len(TINTS)], "tint")


def draw_square(fill: str, kind: str) -> str:
    """A whole cell."""
    place = f'x="{-CELL // 2}" y="{-CELL // 2}" width="{CELL}" height="{CELL}"'
    return f'<rect class="{kind}" {place} fill="{fill}" stroke="#c3d3de"/>'


def draw_alarm() -> str:
    """The frame of a cell where a plan fails."""
    corner, side = 2 - CELL / 2, CELL - 4
    box = f'<rect class="alarm" x="{corner}" y="{corner}" width="{side}" height="{side}" fill="none"'
    return f'{box} stroke="#a5102a" stroke-width="4" stroke-dasharray="7 3"/>'


def draw_body(agent: int) -> str:
    """An agent."""
    eyes = "".join(
        f'<circle cx="{x}" cy="-9" r="3" fill="{PAPER}"/><circle cx="{x}" cy="-8.5" r="1.4" fill="{INK}"/>'
        for x in (-4, 4)
    )
    outline = f'fill="{colour_of(agent)}" stroke="{INK}" stroke-width="1.2"'
    return f'<path d="M-10 4V-8a10 10 0 0 1 20 0V4z" {outline}/>{eyes}'


def draw_gift(agent: int) -> str:
    """The gift on the goal of an agent."""
    return (
        f'<g fill="{colour_of(agent)}" stroke="{INK}"><circle cx="-4" cy="-14.5" r="3.2"/>'
        '<circle cx="4" cy="-14.5" r="3.2"/><path d="M-10-7h20v10h-20zM-12-12h24v5h-24z"/></g>'
        f'<path d="M-2-12h4v15h-4z" fill="{PAPER}"/>'
    )


def draw_plates(agents: list[int], goals: list[int]) -> str:
    """Name plates side by side: dark ones for agents, bright ones for goals."""
    named = [(f"A{agent}", INK, PAPER, INK) for agent in agents]
    named += [(f"G{agent}", PAPER, INK, colour_of(agent)) for agent in goals]
    width = min(26, (CELL - 2) / len(named))
    parts = []
    for n, (name, fill, ink, edge) in enumerate(named):
        left = (n - len(named) / 2) * width
        box = f'<rect x="{left + GAP / 2:g}" y="3" width="{width - GAP:g}" height="15" rx="3" fill="{fill}"'
        parts.append(
            f'{box} stroke="{edge}" stroke-width="1.5"/>{draw_label(left + width / 2, 15, name, width - 2, 13, ink)}'
        )
    return "".join(parts)


def draw_badge() -> str:
    """The mark of an agent that waited."""
    disc = f'<circle class="wait" cx="13" cy="-13" r="7.5" fill="{PAPER}" stroke="{INK}" stroke-width="1.5"/>'
    return disc + draw_label(13, -9.5, "W", 12, 10, INK)


def draw_trail(agent: int, down: int, right: int) -> str:
    """The way of an agent out of its cell; a little to the side, so that both ways of a swap are seen."""
    x, y = -6 * down, 6 * right
    line = f'<line class="trail" x1="{x}" y1="{y}" x2="{x + CELL * right}" y2="{y + CELL * down}"'
    return f'{line} stroke="{colour_of(agent)}" stroke-width="5" stroke-linecap="round" opacity=".65"/>'


def draw_label(x: float, y: float, words: str, width: float, size: float, ink: str, anchor: str = "middle") -> str:
    """Text as SVG. A text wider than `width` has a smaller font.

    Args:
        x, y: the anchor, in pixels.
        words: the text.
        width: the largest width, in pixels.
        size: size of the font.
        ink: its colour.
        anchor: `start`, `middle` or `end` of the text lies at x.
    """
    size = min(size, 1.35 * width / max(len(words), 1))
    place = f'x="{x:g}" y="{y:g}" fill="{ink}" font-size="{size:.1f}" font-weight="600" text-anchor="{anchor}"'
    return f"<text {place}>{escape_text(words)}</text>"
