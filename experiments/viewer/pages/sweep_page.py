"""The page of a sweep: its progress, and any statistic over any axis."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import wilson
from lakewright.core_jax.statistics import COLUMNS
from lakewright.experiments.boards.sweep.folder import SweepFolder
from lakewright.experiments.viewer.catalogue.board_table import ask_database, escape_glob
from lakewright.experiments.viewer.catalogue.discovery import Item
from lakewright.experiments.viewer.charts.heat import heat_map
from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart
from lakewright.experiments.viewer.pages.rendering import Crumb, Page, Table, asked_for, mark_svg

AXES = ("hole_ratio", "size", "agents", "wait_ratio")
SHARES = {"solvable": "status = 'solvable'", "undecided": "status = 'undecided'", "wait_required": "wait_required"}
NUMBERS = tuple(name for name, (kind, _) in COLUMNS.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind))
NORMAL = 1.96  # standard errors to either side of a 95 % interval
MOST_COLUMNS = 14  # of a heat map


class SweepQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statistic over an axis, with a curve for each value of `by`; only cells for which `only` has a value."""

    statistic: str = "solvable"
    over: str = "hole_ratio"
    by: str = "size"
    agents: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if self.statistic not in (*SHARES, *NUMBERS):
            raise ValueError(f"statistic is {self.statistic!r:.40}; choose from {', '.join((*SHARES, *NUMBERS))}")
        for name in ("over", "by"):
            if getattr(self, name) not in AXES:
                raise ValueError(f"{name} is {getattr(self, name)!r:.40}; choose from {', '.join(AXES)}")


class SweepPoint(NamedTuple):
    """The mean of a statistic over `boards` boards, with its 95 % interval: for a share Wilson's, of a number 1.96
    standard errors to either side; None if a single board shows no spread.
    """

    by: float | None
    over: float | None
    mean: float
    low: float | None
    high: float | None
    boards: int


class SweepTable:
    """The finished shards of a sweep. Raises InputError if the folder is not a sweep of this version."""

    def __init__(self, folder: SweepFolder) -> None:
        self.spec = folder.manifest().spec
        self.status = folder.status()
        self._files = list(map(escape_glob, folder.files()))

    @property
    def statistics(self) -> list[str]:
        """The statistics that the sweep has saved."""
        kept = self.spec.columns or tuple(COLUMNS)
        needs = {"solvable": "status", "undecided": "status", "wait_required": "wait_required"}
        return [name for name in (*SHARES, *NUMBERS) if needs.get(name, name) in kept]

    def answer(self, question: SweepQuestion) -> list[SweepPoint]:
        """The points of every curve, in order. Raises InputError if the sweep has not saved the statistic."""
        if question.statistic not in self.statistics:
            raise InputError(
                f"{question.statistic} was not saved by this sweep; choose from {', '.join(self.statistics)}"
            )
        if not self._files:
            return []
        value = f"CAST({SHARES.get(question.statistic, question.statistic)} AS DOUBLE)"
        only = [(name, given) for name in ("agents", "size") if (given := getattr(question, name)) is not None]
        where = "".join(f" AND {name} = ?" for name, _ in only)
        query = (
            f"SELECT {question.by} AS curve, {question.over} AS place, avg({value}) AS mean, "
            f"stddev_samp({value}) AS deviation, count({value}) AS boards FROM read_parquet(?) "
            f"WHERE {value} IS NOT NULL{where} GROUP BY ALL ORDER BY curve, place"
        )
        found = ask_database(query, [self._files, *(given for _, given in only)])
        return [_make_point(**line, share=question.statistic in SHARES) for line in found]


def _make_point(
    curve: float | None, place: float | None, mean: float, deviation: float | None, boards: int, share: bool
) -> SweepPoint:
    """A point of a curve.

    curve, place: where it is. mean, deviation: for the statistic over `boards`. share: whether it is one.
    """
    if share:
        return SweepPoint(curve, place, mean, *wilson(round(mean * boards), boards), boards)
    if deviation is None:
        return SweepPoint(curve, place, mean, None, None, boards)
    half = NORMAL * deviation / boards**0.5
    return SweepPoint(curve, place, mean, mean - half, mean + half, boards)


def sweep_page(item: Item, query: Mapping[str, list[str]]) -> Page:
    """The answer to the question in the address. Raises InputError if it isn't one, or a shard is not readable."""
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
