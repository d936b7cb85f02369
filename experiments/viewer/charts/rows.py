"""Named rows with marks, intervals and bars along one axis, as SVG."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lakewright.experiments.viewer.charts.frame import (
    COLOURS,
    HEIGHT,
    LETTER,
    SHAPES,
    Scale,
    draw_axes,
    draw_legend,
    draw_text,
    escape_text,
    format_short,
    make_scales,
    pick_colour,
    widen_range,
    wrap_picture,
)

LINE, TOP, BOTTOM, LABEL_LINE, SPACE = 22, 48, 24, 15, 12  # a row, the margins, a line of the label, beside the names
WIDE = 330  # along the axis


class Mark(NamedTuple):
    """A mark on a row: shape, colour, tooltip, and an interval if it has one."""

    x: float
    shape: str = "disc"
    colour: str = COLOURS[0]
    interval: tuple[float, float] | None = None
    words: str = ""


class Bar(NamedTuple):
    """A bar from zero, followed by text."""

    x: float
    colour: str
    text: str = ""
    text_x: float = 0.0


class ChartRow(NamedTuple):
    """A name and its marks, drawn above `bar`."""

    name: str
    marks: Sequence[Mark] = ()
    bar: Bar | None = None


def row_chart(
    title: str,
    rows: Sequence[ChartRow],
    *,
    x_label: str = "",
    x_range: tuple[float, float] | None = None,
    lines: Mapping[float, str] | None = None,
    legend: Mapping[str, Mark] | None = None,
    named: bool = True,
    wide: int = WIDE,
) -> str:
    """Rows from top to bottom, as SVG.

    Args:
        title: text above the chart.
        rows: the rows.
        x_label: text below the axis, one or more lines.
        x_range: lowest and highest x, by default the range of marks and lines.
        lines: vertical lines, each with its label.
        legend: an example mark for each name.
        named: whether to write the rows' names; charts of the same rows side by side need them once.
        wide: width along the axis.
    """
    names = max((len(row.name) for row in rows), default=0) if named else 0
    left = SPACE + round(LETTER * names) + (SPACE if named else 0)
    across = Scale(*(x_range or _choose_range(rows, list(lines or ()))), left, left + wide)
    bottom = TOP + LINE * len(rows)
    parts = [_draw_tick(across(x), bottom, format_short(x)) for x in across.ticks(6)]
    parts += [_draw_line(across(x), bottom, word) for x, word in (lines or {}).items()]
    for place, row in enumerate(rows):
        y = TOP + LINE * (place + 0.5)
        parts.append(draw_text(left - SPACE, y + 4, row.name, "end") if named else "")
        parts.append(_draw_row(row, y, across))
    labels = x_label.splitlines()
    for place, label in enumerate(labels):
        y = bottom + BOTTOM + LABEL_LINE * (place + 1)
        parts.append(draw_text(left + wide / 2, y, label, "middle", 'opacity=".75"'))
    height, width = bottom + BOTTOM + LABEL_LINE * len(labels) + 8, left + wide + SPACE + SPACE
    if legend:
        below, more = draw_legend(list(legend), [_draw_sample(mark) for mark in legend.values()], height, width)
        parts.append(below)
        height += more
    return wrap_picture(title, "".join(parts), height, width)


def _choose_range(rows: Sequence[ChartRow], lines: Sequence[float]) -> tuple[float, float]:
    """The range of the marks, their intervals and the lines, with room at both ends."""
    xs = [x for row in rows for mark in row.marks for x in (mark.x, *(mark.interval or ()))] + list(lines)
    low, high = widen_range(min(xs, default=0), max(xs, default=1))
    room = 0.05 * (high - low)
    return low - room, high + room


def _draw_tick(x: float, bottom: float, name: str) -> str:
    line = f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}" stroke="currentColor" opacity=".14"/>'
    return line + draw_text(x, bottom + 16, name, "middle")


def _draw_line(x: float, bottom: float, word: str) -> str:
    line = f'<line x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{bottom}" stroke="currentColor" opacity=".6"'
    return f'{line} stroke-dasharray="2 3"/>{draw_text(x, TOP - 10, word, "middle")}'


def _draw_row(row: ChartRow, y: float, across: Scale) -> str:
    parts = []
    if row.bar:
        width = max(across(row.bar.x) - across(0), 0.5)
        box = f'<rect x="{across(0)}" y="{y - 7:g}" width="{width:g}" height="14" rx="2" fill="{row.bar.colour}"/>'
        parts += [box, draw_text(across(max(row.bar.x, row.bar.text_x)) + 6, y + 4, row.bar.text, "start")]
    return "".join(parts + [_draw_mark(row.name, mark, y, across) for mark in row.marks])


def _draw_mark(name: str, mark: Mark, y: float, across: Scale) -> str:
    said = f"{name}: {mark.words or f'{mark.x:.4g}'}"
    interval = ""
    if mark.interval:
        low, high = mark.interval
        said += f" ({low:.4g} to {high:.4g})"
        interval = (
            f'<line x1="{across(low)}" x2="{across(high)}" y1="{y:g}" y2="{y:g}" '
            f'stroke="{mark.colour}" stroke-width="3" opacity=".45"/>'
        )
    shape = f'<g transform="translate({across(mark.x)} {y:g})" fill="{mark.colour}" color="{mark.colour}">'
    return f"{interval}{shape}{SHAPES[mark.shape]}<title>{escape_text(said)}</title></g>"


def _draw_sample(mark: Mark) -> str:
    return f'<g transform="translate(10 0)" fill="{mark.colour}" color="{mark.colour}">{SHAPES[mark.shape]}</g>'


def stacked_bars(
    title: str, names: Sequence[str], kinds: Mapping[str, Sequence[float]], *, x_label: str = "", y_label: str = ""
) -> str:
    """Stacked bars as SVG.

    Args:
        title: text above the chart.
        names: names of the bars.
        kinds: the height of each kind in every bar.
        x_label: text below the axis.
        y_label: the unit of the heights.
    """
    tops = [sum(heights[n] for heights in kinds.values()) for n in range(len(names))]
    across, up = make_scales((-0.6, len(names) - 0.4), (0, max([*tops, 1.0]) * 1.04))
    half = min(0.32 * (across(1) - across(0)), 26)
    parts, bottom = [draw_axes(across, up, x_label, y_label, dict(enumerate(names)))], [0.0] * len(names)
    for kind, (name, heights) in enumerate(kinds.items()):
        for n, height in enumerate(heights):
            if height:
                low, high, x = up(bottom[n]), up(bottom[n] + height), across(n) - half
                said = escape_text(f"{names[n]}, {name}: {height:.1f}")
                box = f'<rect x="{x:g}" y="{high}" width="{2 * half:g}" height="{max(low - high, 0.5):g}" rx="1.5"'
                parts.append(f'{box} fill="{pick_colour(kind)}"><title>{said}</title></rect>')
                bottom[n] += height
    square = '<path d="M4-5h12v10h-12z" fill="currentColor"/>'
    below, height = draw_legend(list(kinds), [square] * len(kinds))
    return wrap_picture(title, "".join(parts) + below, HEIGHT + height)
