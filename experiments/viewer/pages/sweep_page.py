"""The page of a sweep: how far it is, and any statistic over any axis."""

from collections.abc import Mapping, Sequence

import msgspec

from lakewright.experiments.boards.sweep.folder import SweepFolder
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Item
from lakewright.experiments.viewer.catalogue.sweep_table import SweepPoint, SweepQuestion, SweepTable
from lakewright.experiments.viewer.charts.heat import heat_map
from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart
from lakewright.experiments.viewer.pages.rendering import Crumb, Page, Table, asked_for, mark_svg

SHARES = ("solvable", "undecided", "wait_required")
AXES = ("hole_ratio", "size", "agents", "wait_ratio")
MOST_COLUMNS = 14  # of a heat map


def sweep_page(catalogue: Catalogue, item: Item, query: Mapping[str, list[str]]) -> Page:
    """The answer to the question in the address. Raises InputError if it is not one, or a shard is not readable."""
    table = SweepTable(SweepFolder(item.path))
    question = asked_for(SweepQuestion, query)
    if not query and question.statistic not in table.statistics:
        question = msgspec.structs.replace(question, statistic=table.statistics[0])
    points = table.answer(question)
    scale = 100 if question.statistic in SHARES else 1
    values = {
        "item": item,
        "status": table.status,
        "question": question,
        "statistics": table.statistics,
        "axes": AXES,
        "agents": table.spec.agents,
        "sizes": table.spec.sizes,
        "pictures": [mark_svg(svg) for svg in _draw_pictures(question, points, scale)] if points else [],
        "answer": _tabulate_points(question, points, scale),
    }
    running = table.status.shards_done < table.status.shards and table.status.boards_per_second is not None
    crumbs = [Crumb("All", ""), Crumb(item.name, f"sweep/{item.name}")]
    return Page(item.name, "sweep.html", values, crumbs, running)


def _draw_pictures(question: SweepQuestion, points: Sequence[SweepPoint], scale: int) -> list[str]:
    """Curves, and if both axes have several values the same as a map."""
    title = f"{_plain_name(question.statistic)} over {_plain_name(question.over)}"
    unit = "% of boards" if scale == 100 else "mean"
    curves = list(dict.fromkeys(point.by for point in points))
    series = [
        Series(
            f"{_plain_name(question.by)} {_format_value(by)}",
            [
                Point(
                    point.over or 0.0, scale * point.mean, _scale_end(point.low, scale), _scale_end(point.high, scale)
                )
                for point in points
                if point.by == by
            ],
        )
        for by in curves
    ]
    found = [line_chart(title, series, x_label=_plain_name(question.over), y_label=unit)]
    places = sorted({point.over for point in points if point.over is not None})
    if 1 < len(places) <= MOST_COLUMNS and len(curves) > 1 and question.by != question.over:
        means = {(point.by, point.over): scale * point.mean for point in points}
        values = [[means.get((by, place)) for place in places] for by in curves]
        rows, columns = [_format_value(by) for by in curves], [_format_value(place) for place in places]
        found.append(heat_map(f"{title} and {_plain_name(question.by)}", rows, columns, values, unit, "{:.3g}"))
    return found


def _tabulate_points(question: SweepQuestion, points: Sequence[SweepPoint], scale: int) -> Table:
    header = (_plain_name(question.by), _plain_name(question.over), _plain_name(question.statistic), "95 %", "boards")
    rows = [
        (_format_value(p.by), _format_value(p.over), f"{scale * p.mean:.4g}", _format_interval(p, scale), str(p.boards))
        for p in points
    ]
    return Table(header, rows)


def _scale_end(end: float | None, scale: int) -> float | None:
    return None if end is None else scale * end


def _format_interval(point: SweepPoint, scale: int) -> str:
    """The ends; nothing if a single board shows no spread."""
    if point.low is None or point.high is None:
        return ""
    return f"{scale * point.low:.4g} to {scale * point.high:.4g}"


def _format_value(value: float | None) -> str:
    return "free" if value is None else f"{value:g}"


def _plain_name(name: str) -> str:
    return name.replace("_", " ")
