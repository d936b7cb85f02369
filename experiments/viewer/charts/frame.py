"""The frame of a chart as SVG: axes with round numbers, title, legend; and pictures side by side, as SVG and PNG."""

import functools
import html
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lakewright.core_jax.support import write_atomically

INK = "#2b3440"  # of pictures on white
# Okabe and Ito's colours, which colour-blind people can distinguish; markers and lines differ too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f94", "#b8a800")
# About the origin, in the colour of their series.
SHAPES = {
    "disc": '<circle r="3.4"/>',
    "square": '<path d="M-3-3h6v6h-6z"/>',
    "triangle": '<path d="M0-4.2 4 3.2h-8z"/>',
    "diamond": '<path d="M0-4.2 4.2 0 0 4.2-4.2 0z"/>',
    "mean": '<path d="M0-5.6 5.6 0 0 5.6-5.6 0z" stroke="#fff"/>',
    "down": '<path d="M0 4.2 4-3.2h-8z"/>',
    "ring": '<circle r="3.2" fill="none" stroke="currentColor" stroke-width="1.2"/>',
    "line": '<path d="M-1.5-8h3v16h-3z"/>',
    "box": '<path d="M-8-5h16v10h-16z"/>',
}
WIDTH, HEIGHT = 460, 260  # of the whole picture without its legend, in its own units
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 44, 40  # margins around what is plotted
LEGEND_LINE = 18
LETTER, BOLD = 6.8, 8.4  # the mean width of a letter of the legend, and of a title
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
    return Scale(*widen_range(*x), LEFT, WIDTH - RIGHT), Scale(*widen_range(*y), HEIGHT - BOTTOM, TOP)


def draw_axes(across: Scale, up: Scale, x_label: str, y_label: str, names: Mapping[float, str] | None = None) -> str:
    """Grid lines, numbers and labels of both axes, as SVG.

    Args:
        across: the scale along x.
        up: the scale along y.
        x_label: text below the x axis.
        y_label: text above the y axis.
        names: names of places along x, shown instead of numbers.
    """
    parts = [_up_tick(up(value), format_short(value)) for value in up.ticks()]
    named = thin_names(names) if names else {value: format_short(value) for value in across.ticks(6)}
    parts += [draw_text(across(value), HEIGHT - BOTTOM + 16, name, "middle") for value, name in named.items()]
    parts.append(draw_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_label, "middle", 'opacity=".75"'))
    parts.append(draw_text(LEFT - 36, TOP - 13, y_label, "start", 'opacity=".75"'))
    return "".join(parts)


def draw_legend(
    names: Sequence[str], patterns: Sequence[str], top: int = HEIGHT, width: int = WIDTH
) -> tuple[str, int]:
    """The legend below a chart, and its height.

    Args:
        names: what the legend explains; names wrap at the width.
        patterns: an SVG for each name, 20 wide.
        top: y of the legend's upper edge.
        width: width of the chart.
    """
    x, line, parts = float(LEFT - 30), 0, []
    for n, name in enumerate(names):
        needed = 34 + LETTER * len(name)
        if n and x + needed > width:
            x, line = float(LEFT - 30), line + 1
        y = top + LEGEND_LINE * line + 8
        parts.append(f'<g transform="translate({x:g} {y:g})" color="{pick_colour(n)}">{patterns[n]}</g>')
        parts.append(draw_text(x + 26, y + 4, name, "start"))
        x += needed
    return "".join(parts), LEGEND_LINE * (line + 1) + 4


def wrap_picture(title: str, parts: str, height: int = HEIGHT, width: int = WIDTH) -> str:
    """A whole SVG, drawn in the text colour of the page around it.

    Args:
        title: text above the picture, which gets at least as wide.
        parts: SVG to draw.
        height, width: extent of the coordinates.
    """
    width = max(width, round(LEFT - 36 + BOLD * len(title)))
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" class="chart"'
    named = draw_text(LEFT - 36, 15, title, "start", 'font-weight="650" font-size="14"')
    return (
        f'{opening} aria-label="{escape_text(title)}" {FONT} font-size="11.5" fill="currentColor">{named}{parts}</svg>'
    )


def join_pictures(pictures: Sequence[str], title: str = "", columns: int | None = None) -> str:
    """Pictures on white as one SVG, each in its own size.

    Args:
        pictures: from `wrap_picture`.
        title: text above them.
        columns: how many stand side by side, by default all.
    """
    columns = columns or max(len(pictures), 1)
    y, wide, placed = 8 + (26 if title else 0), 0, []
    for first in range(0, len(pictures), columns):
        x, high = 12, 0
        for picture in pictures[first : first + columns]:
            width, height = _measure_picture(picture)
            placed.append(picture.replace("<svg ", f'<svg x="{x}" y="{y}" width="{width}" height="{height}" ', 1))
            x, high = x + width + 16, max(high, height)
        wide, y = max(wide, x - 4), y + high + 8
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {y}" width="{wide}" color="{INK}" {FONT}>'
    named = draw_text(16, 24, title, "start", f'font-weight="650" font-size="16" fill="{INK}"') if title else ""
    return f'{opening}<rect width="{wide}" height="{y}" fill="#fff"/>{named}{"".join(placed)}</svg>'


def _measure_picture(picture: str) -> tuple[int, int]:
    """The width and height of a picture from `wrap_picture`."""
    _, _, width, height = re.search(r'viewBox="([^"]+)"', picture)[1].split()  # type: ignore[index]
    return round(float(width)), round(float(height))


def save_picture(svg: str, folder: Path, name: str) -> list[Path]:
    """Writes NAME.svg and NAME.png, twice as large, into `folder`: their paths.

    On a machine without a font for the text the PNG is left out, with a warning.
    """
    pictures = {folder / f"{name}.svg": svg.encode()}
    if _has_font():
        pictures[folder / f"{name}.png"] = _render_png(svg)
    else:
        warnings.warn(f"{name}.png is not written: this machine has no fonts; install fonts-dejavu-core", stacklevel=2)
    for path, data in pictures.items():
        write_atomically(path, data)
    return list(pictures)


@functools.cache
def _has_font() -> bool:
    """Return True if a letter leaves a trace when it is drawn."""
    empty = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'
    return _render_png(empty.format(f"<g {FONT}>{draw_text(2, 14, 'x', 'start')}</g>")) != _render_png(empty.format(""))


def _render_png(svg: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=2))


def draw_text(x: float, y: float, words: str, anchor: str, look: str = "") -> str:
    """A line of text.

    Args:
        x, y: where it is anchored.
        words: the text, escaped here.
        anchor: which part of the text lies at x: `start`, `middle` or `end`.
        look: more attributes.
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
    """At most MOST_NAMES of the names, evenly spaced."""
    every = -(-len(names) // MOST_NAMES)
    return {value: name for n, (value, name) in enumerate(names.items()) if n % every == 0}


def _up_tick(y: float, name: str) -> str:
    line = f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="currentColor" opacity=".14"/>'
    return line + draw_text(LEFT - 6, y + 4, name, "end")


def widen_range(low: float, high: float) -> tuple[float, float]:
    """The range, widened if it has no extent."""
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def escape_text(text: object) -> str:
    """Text as markup that shows it; what cannot be shown becomes U+FFFD."""
    shown = (letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in str(text))
    return html.escape("".join(shown), quote=True)
