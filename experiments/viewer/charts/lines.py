"""Curves as SVG: series that differ in colour, marker and line, with their intervals."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lakewright.engineer.difficulty import Calibration
from lakewright.experiments.viewer.charts.frame import (
    HEIGHT,
    SHAPES,
    TOP,
    WIDTH,
    Scale,
    draw_axes,
    draw_legend,
    draw_text,
    escape_text,
    make_scales,
    pick_colour,
    wrap_picture,
)

DASHES = ("", "7 3", "7 3 2 3", "2 3", "10 3 2 3 2 3", "4 2", "1 2", "12 3")
MARKS = ("disc", "square", "triangle", "diamond", "down")
MARK_LETTER = 5.5  # the width of a letter of a mark's label, at most
MOST_MARKED, MOST_SAID = 40, 400  # points of a series; beyond, marks are not seen, or not there


class Point(NamedTuple):
    """A point of a curve, with its tooltip and an interval if it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    words: str = ""


class Series(NamedTuple):
    """A curve and its name. Without `joined` only points are drawn, without `marked` only a line."""

    name: str
    points: Sequence[Point]
    joined: bool = True
    marked: bool = True


def line_chart(
    title: str,
    series: Sequence[Series],
    *,
    x_label: str = "",
    y_label: str = "",
    y_range: tuple[float, float] | None = None,
    names: Mapping[float, str] | None = None,
    marks: Mapping[float, str] | None = None,
) -> str:
    """Curves over one x axis, as SVG.

    Args:
        title: text above the chart.
        series: the curves. A point whose y is not a number is left out, and the line continues after it.
        x_label: text below the x axis.
        y_label: the unit along y.
        y_range: lowest and highest y, by default the points' range.
        names: names of places along x, shown instead of numbers.
        marks: vertical lines, each with its label.
    """
    drawn = [one._replace(points=[point for point in one.points if point.y == point.y]) for one in series]
    points = [point for one in drawn for point in one.points]
    xs = [point.x for point in points] + list(names or ())
    ys = [y for point in points for y in (point.y, point.low, point.high) if y is not None]
    across, up = make_scales((min(xs, default=0), max(xs, default=1)), y_range or _choose_range(ys))
    parts = [
        draw_axes(across, up, x_label, y_label, names),
        *_draw_marks({across(x): word for x, word in (marks or {}).items()}),
    ]
    parts += [_draw_band(one, n, across, up) for n, one in enumerate(drawn)]
    parts += [_draw_curve(one, n, across, up) for n, one in enumerate(drawn)]
    below, height = draw_legend([one.name for one in series], [_draw_sample(one, n) for n, one in enumerate(series)])
    if len(series) == 1:
        below, height = "", 0
    return wrap_picture(title, "".join(parts) + below, HEIGHT + height)


def _choose_range(ys: Sequence[float]) -> tuple[float, float]:
    if not any(ys):  # a share that is 0 throughout lies on the axis
        return 0, 1
    room = 0.06 * (max(ys) - min(ys))
    return (0 if 0 <= min(ys) < max(ys) / 3 else min(ys) - room), max(ys) + room


def _draw_curve(one: Series, n: int, across: Scale, up: Scale) -> str:
    places = [(across(point.x), up(point.y)) for point in one.points]
    line = " ".join(f"{x},{y}" for x, y in places)
    look = f'stroke="currentColor" stroke-width="1.9" stroke-dasharray="{DASHES[n % len(DASHES)]}" fill="none"'
    marked = zip(one.points, places, strict=True) if one.marked and len(places) <= MOST_SAID else ()
    mark = SHAPES[MARKS[n % len(MARKS)]] if len(places) <= MOST_MARKED else '<circle r="2" opacity="0"/>'
    dots = "".join(
        f'<g transform="translate({x} {y})">{mark}<title>{escape_text(_describe_point(one, point))}</title></g>'
        for point, (x, y) in marked
    )
    curve = f'<polyline points="{line}" {look}/>' if one.joined else ""
    return f'<g color="{pick_colour(n)}" fill="currentColor">{curve}{dots}</g>'


def _draw_band(one: Series, n: int, across: Scale, up: Scale) -> str:
    sure = [(across(p.x), up(p.low), up(p.high)) for p in one.points if p.low is not None and p.high is not None]
    if not sure:
        return ""
    if len(sure) == 1:
        x, low, high = sure[0]
        return (
            f'<line x1="{x}" x2="{x}" y1="{low}" y2="{high}" stroke="{pick_colour(n)}" stroke-width="5" opacity=".3"/>'
        )
    outline = [(x, high) for x, _, high in sure] + [(x, low) for x, low, _ in reversed(sure)]
    return f'<polygon points="{" ".join(f"{x},{y}" for x, y in outline)}" fill="{pick_colour(n)}" opacity=".16"/>'


def _describe_point(one: Series, point: Point) -> str:
    sure = f" ({point.low:.5g} to {point.high:.5g})" if point.low is not None and point.high is not None else ""
    return f"{one.name}: {point.words or f'{point.y:.4g}'}{sure}"


def _draw_sample(one: Series, n: int) -> str:
    line = f'<line x2="20" stroke="currentColor" stroke-width="1.9" stroke-dasharray="{DASHES[n % len(DASHES)]}"/>'
    mark = f'<g transform="translate(10 0)" fill="currentColor">{SHAPES[MARKS[n % len(MARKS)]]}</g>'
    return line * one.joined + mark * one.marked


def _draw_marks(words: Mapping[float, str]) -> list[str]:
    """Vertical lines at these places, with the labels that do not run into the one before."""
    parts, free = list[str](), 0.0
    for x, word in sorted(words.items()):
        if x > WIDTH:
            break
        line = f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - 40}" stroke="currentColor" opacity=".3"'
        parts.append(f'{line} stroke-dasharray="2 3"/>')
        long = MARK_LETTER * len(word)
        at_end = x + long > WIDTH  # such a label ends at its line
        if x - long * at_end >= free:
            parts.append(draw_text(x, TOP - 4, word, "end" if at_end else "start", 'font-size="9.5" opacity=".7"'))
            free = x + 4 + long
    return parts


def reliability_chart(found: Mapping[str, Calibration], answers: str = "plans") -> str:
    """Valid answers against the predicted rate of groups, in percent; on the diagonal both agree.

    answers: the word for answers.
    """
    series = [Series("as expected", [Point(0, 0), Point(100, 100)])]
    for name, calibration in found.items():
        bins = calibration.reliability
        points = [
            Point(100 * bin.predicted, 100 * bin.observed, words=f"{bin.groups} groups of {name}") for bin in bins
        ]
        series.append(Series(name, points))
    return line_chart(
        f"Valid {answers}: expected and observed",
        series,
        x_label="% expected by the difficulty model",
        y_label="% observed",
        y_range=(0.0, 100.0),
    )
