"""The look of curves and charts, and the frame of a chart as SVG: axes with round numbers, title, legend."""

import html
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#2b3440"  # of pictures on white
LOOK: Any = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.2,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "svg.fonttype": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
}
# Okabe and Ito's colours, which colour-blind people can distinguish; markers and lines differ too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f94", "#b8a800")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)), (0, (8, 2)))
PERCENT = (-2, 102)  # with room for the markers


def choose_style(n: int) -> dict[str, Any]:
    """The look of series number `n`, for matplotlib."""
    n %= len(COLOURS)
    return {"color": COLOURS[n], "marker": MARKERS[n], "linestyle": LINES[n]}


def save_svg(figure: "Figure") -> str:
    """A figure as SVG, the same bytes each time."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue().replace("'DejaVu Sans'", "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif")


WIDTH, HEIGHT = 460, 260  # of the whole picture without its legend, in its own units
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 44, 40  # margins around what is plotted
LEGEND_LINE = 18
LETTER = 6.8  # the mean width of a letter of the legend
FONT = "font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\""
MOST_NAMES = 12  # along an axis


class Scale(NamedTuple):
    """The values low .. high along the pixels begin .. end."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def ticks(self, most: int = 5) -> list[float]:
        """At most about `most` round numbers within."""
        step = 10 ** math.floor(math.log10((self.high - self.low) / most))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= most)
        first = math.ceil(self.low / step - 1e-9)
        return [round(n * step, 10) for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def make_scales(x: tuple[float, float], y: tuple[float, float]) -> tuple[Scale, Scale]:
    """The scales of a chart over these ranges; a range without extent is widened."""
    return Scale(*_widen_range(*x), LEFT, WIDTH - RIGHT), Scale(*_widen_range(*y), HEIGHT - BOTTOM, TOP)


def draw_axes(across: Scale, up: Scale, x_label: str, y_label: str, names: Mapping[float, str] | None = None) -> str:
    """Grid lines, numbers and labels of both axes, as SVG.

    Args:
        across: The scale along x.
        up: The scale along y.
        x_label: Stands below the axis.
        y_label: Stands above the axis.
        names: Of places along x, shown instead of numbers.
    """
    parts = [_up_tick(up(value), format_short(value)) for value in up.ticks()]
    named = thin_names(names) if names else {value: format_short(value) for value in across.ticks(6)}
    parts += [draw_text(across(value), HEIGHT - BOTTOM + 16, name, "middle") for value, name in named.items()]
    parts.append(draw_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_label, "middle", 'opacity=".75"'))
    parts.append(draw_text(LEFT - 36, TOP - 13, y_label, "start", 'opacity=".75"'))
    return "".join(parts)


def draw_legend(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, int]:
    """The legend below a chart, and its height; names wrap as the width takes them."""
    x, line, parts = float(LEFT - 30), 0, []
    for n, name in enumerate(names):
        needed = 34 + LETTER * len(name)
        if n and x + needed > WIDTH:
            x, line = float(LEFT - 30), line + 1
        y = HEIGHT + LEGEND_LINE * line + 8
        parts.append(f'<g transform="translate({x:g} {y:g})" color="{pick_colour(n)}">{patterns[n]}</g>')
        parts.append(draw_text(x + 26, y + 4, name, "start"))
        x += needed
    return "".join(parts), LEGEND_LINE * (line + 1) + 4


def wrap_picture(title: str, parts: str, height: int = HEIGHT, width: int = WIDTH) -> str:
    """A whole SVG; its ink is that of the page around it.

    Args:
        title: above the picture.
        parts: SVG of what is in it.
        height, width: of its coordinates.
    """
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" class="chart"'
    named = draw_text(LEFT - 36, 15, title, "start", 'font-weight="650" font-size="14"')
    return (
        f'{opening} aria-label="{escape_text(title)}" {FONT} font-size="11.5" fill="currentColor">{named}{parts}</svg>'
    )


def join_pictures(pictures: Sequence[str], width: int, height: int) -> str:
    """Pictures side by side on white, as one SVG. width, height: the place of each."""
    placed = [
        picture.replace("<svg ", f'<svg x="{12 + n * (width + 16)}" y="8" width="{width}" height="{height}" ', 1)
        for n, picture in enumerate(pictures)
    ]
    wide, high = len(pictures) * (width + 16) + 8, height + 16
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" color="{INK}">'
    return f'{opening}<rect width="{wide}" height="{high}" fill="#fff"/>{"".join(placed)}</svg>'


def draw_text(x: float, y: float, words: str, anchor: str, look: str = "") -> str:
    """A line of text.

    Args:
        x, y: where it is anchored.
        words: the text, which is escaped.
        anchor: `start`, `middle` or `end` of the text lies at x.
        look: further attributes.
    """
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {look}>{escape_text(words)}</text>'


def format_short(value: float) -> str:
    """A number for an axis: 1 500 000 is 1.5M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def pick_colour(n: int) -> str:
    """The colour of series number `n`."""
    return COLOURS[n % len(COLOURS)]


def thin_names(names: Mapping[float, str]) -> dict[float, str]:
    """At most MOST_NAMES of the names, evenly."""
    every = -(-len(names) // MOST_NAMES)
    return {value: name for n, (value, name) in enumerate(names.items()) if n % every == 0}


def _up_tick(y: float, name: str) -> str:
    line = f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="currentColor" opacity=".14"/>'
    return line + draw_text(LEFT - 6, y + 4, name, "end")


def _widen_range(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def escape_text(text: object) -> str:
    """Text as markup that shows it; what cannot be shown becomes U+FFFD."""
    shown = (letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in str(text))
    return html.escape("".join(shown), quote=True)
