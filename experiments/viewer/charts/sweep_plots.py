"""The pictures of a sweep, as SVG and PNG: statistics of its cells over hole ratio, size and agents."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewright.experiments.boards.sweep.cells import CellSummary, Rate, make_rate, summarize_sweep
from lakewright.experiments.boards.sweep.folder import SweepFolder
from lakewright.experiments.viewer.charts.frame import join_pictures, save_picture
from lakewright.experiments.viewer.charts.heat import heat_map
from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart

THRESHOLD = 0.407254  # holes of an endless map beyond which its free cells have no endless component (Jacobsen, 2015)
FindRate: TypeAlias = Callable[[CellSummary], Rate | None]
DISTRIBUTIONS = 4  # hole ratios whose distributions are drawn
FEWEST_OF_DISTRIBUTION = 100  # boards that a distribution is drawn of
FEWEST = 30  # boards that a share or a quantile is drawn of
PERCENT = (0.0, 100.0)
PANELS = 3  # charts side by side
CurveKind: TypeAlias = tuple[int, float | None]  # agents and wait ratio
CurveCells: TypeAlias = list[CellSummary]


def plot(folder: Path) -> list[Path]:
    """Draws the pictures of a sweep into DIR/plots and returns their paths. Raises InputError like `summarize`."""
    sweep = SweepFolder(folder)
    cells = summarize_sweep(sweep)
    values = pq.read_table(sweep.folder / "values.parquet")
    plots = sweep.folder / "plots"
    return [path for name, svg in _draw_pictures(cells, values) for path in save_picture(svg, plots, name)]


def _draw_pictures(cells: CurveCells, values: pa.Table) -> Iterator[tuple[str, str]]:
    """Names and pictures; a picture without data in the sweep is left out."""
    free, strata = ([cell for cell in cells if (cell.wait_ratio is None) == kind] for kind in (True, False))
    several = len({cell.hole_ratio for cell in cells}) > 1
    if several and free:
        solvable = "Boards that are solvable"
        yield from _draw_lines("solvable", free, solvable, "% of boards", _rate_of("solvable"), PERCENT, THRESHOLD)
        title = "Unsolvable though each agent alone has a path"
        share = _take_complement("solvable_if_connected")
        yield from _draw_lines("blocked", free, title, "% of boards where each agent has a path", share)
    if several and strata:
        yield from _draw_lines("acceptance", strata, "Attempts that met their stratum", "% of attempts", _acceptance_of)
    if several and len({cell.size for cell in free}) > 1:
        yield from _draw_maps("waits", free, "Forced waits: every cheapest plan waits", "% of solvable boards")
    if several:
        title = "Solvable boards on which some agent must leave its shortest path"
        yield from _draw_lines("gaps", cells, title, "% of solvable boards", _take_complement("shortest_paths_suffice"))
        title = "Boards that shortest paths leave open"
        unit = "% of boards that need a flood or a search"
        yield from _draw_lines("open", cells, title, unit, _take_complement("bound_certificate"))
    yield from draw_optima(cells, values)
    yield from draw_predictors(cells, values)


def _draw_lines(
    name: str,
    cells: CurveCells,
    title: str,
    unit: str,
    share: FindRate,
    y_range: tuple[float, float] | None = None,
    threshold: float | None = None,
) -> Iterator[tuple[str, str]]:
    """A share over the hole ratio, with 95 % intervals: one line for each size, one chart for each number of agents."""
    known = [found for cell in cells if (found := share(cell)) and found.of >= FEWEST]
    if not any(share(cell) for cell in cells):
        return
    top = 106 * max((found.high for found in known), default=0.01)
    marks = {} if threshold is None else {threshold: "percolation threshold"}
    charts = [
        line_chart(
            _title_of(kind),
            [Series(f"{size}x{size}", _list_points(row, share)) for size, row in _by_size(group)],
            x_label="hole ratio",
            y_label=unit,
            y_range=y_range or (0, top),
            marks=marks,
        )
        for kind, group in _by_kind(cells)
    ]
    yield name, join_pictures(charts, title, PANELS)


def _list_points(row: CurveCells, share: FindRate) -> list[Point]:
    found = [(cell.hole_ratio, rate) for cell in row if (rate := share(cell)) and rate.of >= FEWEST]
    return [Point(ratio, 100 * (rate.rate or 0), 100 * rate.low, 100 * rate.high) for ratio, rate in found]


def _draw_maps(name: str, cells: CurveCells, title: str, unit: str) -> Iterator[tuple[str, str]]:
    """The share of boards with a forced wait, by size and hole ratio."""
    if not any("wait_required" in cell.rates for cell in cells):
        return
    kinds = _by_kind(cells)
    grids = [_make_grid(group, lambda cell: _to_percent(cell.rates["wait_required"])) for _, group in kinds]
    top = max((value for grid in grids for line in grid for value in line if value is not None), default=None)
    maps = [
        heat_map(
            _title_of(kind),
            [f"{size}x{size}" for size, _ in _by_size(group)],
            [f"{ratio:g}" for ratio in _list_ratios(group)],
            grid,
            f"{unit}, by hole ratio",
            "{:.1f}",
            top,
        )
        for (kind, group), grid in zip(kinds, grids, strict=True)
    ]
    yield name, join_pictures(maps, title, 1)


def _make_grid(group: CurveCells, number: Callable[[CellSummary], float | None]) -> list[list[float | None]]:
    """A number for each cell, [sizes, hole ratios]; None if it is missing."""
    ratios, sizes = _list_ratios(group), [size for size, _ in _by_size(group)]
    there = {(cell.size, cell.hole_ratio): number(cell) for cell in group}
    return [[there.get((size, ratio)) for ratio in ratios] for size in sizes]


def _rate_of(name: str) -> FindRate:
    return lambda cell: cell.rates.get(name)


def _take_complement(name: str) -> FindRate:
    """One minus a share, for what doesn't happen."""

    def share(cell: CellSummary) -> Rate | None:
        found = cell.rates.get(name)
        if found is None or found.rate is None:
            return None
        return Rate(found.of - found.count, found.of, 1 - found.rate, 1 - found.high, 1 - found.low)

    return share


def _acceptance_of(cell: CellSummary) -> Rate | None:
    return None if cell.acceptance is None else make_rate(cell.boards, round(cell.boards / cell.acceptance))


def _to_percent(found: Rate) -> float | None:
    return None if found.rate is None or found.of < FEWEST else 100 * found.rate


def draw_optima(cells: CurveCells, values: pa.Table) -> Iterator[tuple[str, str]]:
    """Distributions of the optimal sum of costs on the largest boards, and its middle half over the hole ratio."""
    if not any("sum_of_costs" in cell.quantities for cell in cells):
        return
    charts = []
    for kind, group in _by_kind(cells):
        size, row = _by_size(group)[-1]
        charts += [
            line_chart(
                f"{_title_of(kind)}, {size}x{size}",
                _list_distributions(row, values),
                x_label="optimal sum of costs, at most",
                y_label="% of solvable boards",
                y_range=PERCENT,
            ),
            line_chart(
                f"{_title_of(kind)}: mean and middle half",
                [Series(f"{size}x{size}", _list_means(row)) for size, row in _by_size(group)],
                x_label="hole ratio",
                y_label="optimal sum of costs, steps",
            ),
        ]
    yield "optima", join_pictures(charts, "Optimal sum of costs", 2)


def _list_distributions(row: CurveCells, values: pa.Table) -> list[Series]:
    """Cumulative distributions of a few cells, as steps."""
    there = [cell for cell in row if _boards_with(cell, "sum_of_costs") >= FEWEST_OF_DISTRIBUTION]
    chosen = sorted({round(place) for place in np.linspace(0, len(there) - 1, DISTRIBUTIONS)}) if there else []
    found = []
    for cell in (there[place] for place in chosen):
        costs, boards = _pool_distribution(values, cell.cell, "sum_of_costs")
        shares = 100 * boards.cumsum() / boards.sum()
        x, y = np.repeat(costs, 2)[1:].tolist(), np.repeat(shares, 2)[:-1].tolist()
        found.append(
            Series(f"hole ratio {cell.hole_ratio:g}", [Point(*pair) for pair in zip(x, y, strict=True)], marked=False)
        )
    return found


def _list_means(row: CurveCells) -> list[Point]:
    """The mean and the middle half of each cell."""
    found = [
        (cell.hole_ratio, cell.quantities["sum_of_costs"])
        for cell in row
        if _boards_with(cell, "sum_of_costs") >= FEWEST
    ]
    return [Point(ratio, of.mean, of.quantiles[1], of.quantiles[3]) for ratio, of in found]


def draw_predictors(cells: CurveCells, values: pa.Table) -> Iterator[tuple[str, str]]:
    """The power of each statistic to tell boards with a forced wait from others, on the largest boards."""
    known = (
        *("makespan_bound", "cost_bound", "manhattan", "vertex_conflicts", "target_conflicts", "swap_conflicts"),
        *("cardinal_conflicts", "path_overlap", "mdd_nodes", "mdd_overlap", "components", "largest_component"),
        *("branching", "dead_ends", "corridors", "bottlenecks"),
    )
    (kind, group), *_ = _by_kind(cells)
    size, row = _by_size(group)[-1]
    row = [cell for cell in row if cell.rates.get("wait_required") and cell.rates["wait_required"].count >= FEWEST]
    names = [name for name in known if any(name in cell.quantities for cell in row)]
    if not names:
        return
    areas = np.array([[measure_area(values, cell.cell, name) for cell in row] for name in names])
    order = np.argsort(-np.abs(areas - 0.5).mean(axis=1))
    picture = heat_map(
        f"What predicts a forced wait: {_title_of(kind)}, {size}x{size}",
        [names[place].replace("_", " ") for place in order],
        [f"{cell.hole_ratio:g}" for cell in row],
        areas[order].tolist(),
        "chance that a board with a forced wait has the larger value, by hole ratio; dark far from 0.5",
        "{:.2f}",
        0.5,
        shade=lambda area: abs(area - 0.5),
    )
    yield "predictors", join_pictures([picture])


def measure_area(values: pa.Table, cell: str, statistic: str) -> float:
    """The chance that a solvable board with a forced wait has a larger value than one without; ties count half.

    This is the area under the ROC curve.
    """
    of = values.filter((pc.field("cell") == cell) & (pc.field("statistic") == statistic))
    levels = np.unique(of["value"].to_numpy())
    counts = []
    for wait in (True, False):
        some = of.filter(pc.field("wait_required") == wait)
        counts.append(np.bincount(np.searchsorted(levels, some["value"]), some["boards"], minlength=len(levels)))
    waiting, others = counts
    below = np.cumsum(others) - others
    return float(waiting @ (below + others / 2) / (waiting.sum() * others.sum()))


def _pool_distribution(values: pa.Table, cell: str, statistic: str) -> tuple[np.ndarray, np.ndarray]:
    """The values of a statistic in a cell, rising, and how many boards have each."""
    of = values.filter((pc.field("cell") == cell) & (pc.field("statistic") == statistic))
    pooled = of.group_by("value").aggregate([("boards", "sum")]).sort_by("value")
    return pooled["value"].to_numpy(), pooled["boards_sum"].to_numpy()


def _boards_with(cell: CellSummary, name: str) -> int:
    return cell.quantities[name].of if name in cell.quantities else 0


def _list_ratios(group: CurveCells) -> list[float]:
    return sorted({cell.hole_ratio for cell in group})


def _by_kind(cells: CurveCells) -> list[tuple[CurveKind, CurveCells]]:
    """By number of agents, then by wait ratio."""
    kinds = sorted({(cell.agents, cell.wait_ratio) for cell in cells}, key=lambda kind: (kind[0], kind[1] or 0.0))
    return [(kind, [cell for cell in cells if (cell.agents, cell.wait_ratio) == kind]) for kind in kinds]


def _by_size(cells: CurveCells) -> list[tuple[int, CurveCells]]:
    """By rising size, each by rising hole ratio."""
    in_order = sorted(cells, key=lambda cell: cell.hole_ratio)
    return [(size, [cell for cell in in_order if cell.size == size]) for size in sorted({cell.size for cell in cells})]


def _title_of(kind: CurveKind) -> str:
    """Such as "3 agents, wait ratio 0.5"."""
    agents, wait = kind
    words = f"{agents} agent{'s' * (agents > 1)}"
    return words if wait is None else f"{words}, wait ratio {wait:g}"
