"""The pictures of a sweep, as SVG and PNG: statistics of its cells over hole ratio, size and agents.

Series differ in marker, line and colour, maps run from dark to bright: so they can be read in greyscale.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lakewright.core_jax.support import write_atomically
from lakewright.experiments.charts.frame import INK, LOOK, PERCENT, choose_style, save_svg
from lakewright.experiments.sweep.cells import CellSummary, Rate, make_rate, summarize_sweep
from lakewright.experiments.sweep.folder import SweepFolder

THRESHOLD = 0.407254  # holes of an endless map beyond which its free cells have no endless component (Jacobsen, 2015)
Share: TypeAlias = Callable[[CellSummary], Rate | None]
DISTRIBUTIONS = 4  # hole ratios whose distributions are drawn
FEWEST_OF_DISTRIBUTION = 100  # boards that a distribution is drawn of
MAP = "cividis"  # of even steps in brightness
PANEL = (4.3, 3.6)  # inches
FEWEST = 30  # boards that a share or a quantile is drawn of
Kind: TypeAlias = tuple[int, float | None]  # agents and wait ratio
Group: TypeAlias = list[CellSummary]


def plot(folder: Path) -> list[Path]:
    """Summarizes a sweep and draws its pictures into DIR/plots: their paths. Raises InputError as `summarize`."""
    sweep = SweepFolder(folder)
    cells = summarize_sweep(sweep)
    values = pq.read_table(sweep.folder / "values.parquet")
    written = []
    for name, figure in _draw_figures(cells, values):
        with matplotlib.rc_context(LOOK | {"svg.hashsalt": name}):
            png = io.BytesIO()
            figure.savefig(png, format="png", dpi=150)
            for path, data in ((".svg", save_svg(figure).encode()), (".png", png.getvalue())):
                written.append(sweep.folder / "plots" / f"{name}{path}")
                write_atomically(written[-1], data)
    return written


def _draw_figures(cells: Group, values: pa.Table) -> Iterator[tuple[str, Figure]]:
    """Names and figures, of those for which the sweep has data."""
    free, strata = ([cell for cell in cells if (cell.wait_ratio is None) == kind] for kind in (True, False))
    several = len({cell.hole_ratio for cell in cells}) > 1
    with matplotlib.rc_context(LOOK):
        if several and free:
            yield from _draw_lines(
                "solvable", free, "Boards that are solvable", "% of boards", _rate_of("solvable"), THRESHOLD
            )
            title = "Unsolvable though each agent alone has a path"
            share = _take_complement("solvable_if_connected")
            yield from _draw_lines("blocked", free, title, "% of boards where\neach agent has a path", share)
        if several and strata:
            yield from _draw_lines(
                "acceptance", strata, "Attempts that met their stratum", "% of attempts", _acceptance_of
            )
        if several and len({cell.size for cell in free}) > 1:
            yield from _draw_maps("waits", free, "Forced waits: every cheapest plan waits", "% of solvable boards")
        if several:
            title = "Solvable boards on which some agent must leave its shortest path"
            yield from _draw_lines(
                "gaps", cells, title, "% of solvable boards", _take_complement("shortest_paths_suffice")
            )
            title = "Boards that shortest paths leave open"
            share = _take_complement("bound_certificate")
            yield from _draw_lines("open", cells, title, "% of boards that need\na flood or a search", share)
        yield from draw_optima(cells, values)
        yield from draw_predictors(cells, values)


def _draw_lines(
    name: str, cells: Group, title: str, unit: str, share: Share, threshold: float | None = None
) -> Iterator[tuple[str, Figure]]:
    """A share over the hole ratio, with 95 % intervals: one line for each size, one panel for each number of agents."""
    if not any(share(cell) for cell in cells):
        return
    figure, panels = panels_of(cells, title)
    for axes, (_, group) in zip(panels, by_kind(cells), strict=True):
        for n, (size, row) in enumerate(by_size(group)):
            points = [(cell.hole_ratio, found) for cell in row if (found := share(cell)) and found.of >= FEWEST]
            ratios = [ratio for ratio, _ in points]
            middle, low, high = 100 * np.array([[f.rate or 0, f.low, f.high] for _, f in points]).reshape(-1, 3).T
            axes.errorbar(ratios, middle, [middle - low, high - middle], **choose_style(n), capsize=2, elinewidth=0.8)
            axes.plot([], [], **choose_style(n), label=f"{size}x{size}")
        if threshold is not None:
            axes.axvline(threshold, color=INK, linewidth=0.8, linestyle=(0, (1, 3)))
            axes.text(threshold, 1.0, " percolation threshold", transform=axes.get_xaxis_transform(), va="top", size=8)
        axes.set(xlabel="hole ratio", ylabel=unit)
    if name == "solvable":
        panels[0].set_ylim(PERCENT)
    legend_below(figure, panels)
    yield name, figure


def _draw_maps(name: str, cells: Group, title: str, unit: str) -> Iterator[tuple[str, Figure]]:
    """The share of boards with a forced wait, by size and hole ratio."""
    if not any("wait_required" in cell.rates for cell in cells):
        return
    figure, panels = panels_of(cells, title, share_y=False)
    shares = [_make_grid(group, lambda cell: _to_percent(cell.rates["wait_required"])) for _, group in by_kind(cells)]
    top = np.nanmax([np.nanmax(grid) for _, _, grid in shares])
    for axes, (ratios, sizes, grid) in zip(panels, shares, strict=True):
        drawn = axes.imshow(grid, origin="lower", aspect="auto", cmap=MAP, vmin=0, vmax=top)
        write_numbers(axes, grid, top / 2, "{:.1f}")
        named = range(0, len(ratios), 1 + len(ratios) // 10)  # so that names are separated
        axes.set_xticks(named, [f"{ratios[place]:g}" for place in named])
        axes.set_yticks(range(len(sizes)), [f"{size}x{size}" for size in sizes])
        axes.set(xlabel="hole ratio")
    figure.colorbar(drawn, ax=panels, label=unit, pad=0.02)
    yield name, figure


def _make_grid(group: Group, number: Callable[[CellSummary], float]) -> tuple[list[float], list[int], np.ndarray]:
    """Hole ratios, sizes, and a number of each cell, [sizes, hole ratios], NaN where there is none."""
    ratios, sizes = sorted({cell.hole_ratio for cell in group}), sorted({cell.size for cell in group})
    grid = np.full((len(sizes), len(ratios)), np.nan)
    for cell in group:
        grid[sizes.index(cell.size), ratios.index(cell.hole_ratio)] = number(cell)
    return ratios, sizes, grid


def _rate_of(name: str) -> Share:
    return lambda cell: cell.rates.get(name)


def _take_complement(name: str) -> Share:
    """The share of boards on which something does not happen."""

    def share(cell: CellSummary) -> Rate | None:
        found = cell.rates.get(name)
        if found is None or found.rate is None:
            return None
        return Rate(found.of - found.count, found.of, 1 - found.rate, 1 - found.high, 1 - found.low)

    return share


def _acceptance_of(cell: CellSummary) -> Rate | None:
    return None if cell.acceptance is None else make_rate(cell.boards, round(cell.boards / cell.acceptance))


def _to_percent(found: Rate) -> float:
    return np.nan if found.rate is None or found.of < FEWEST else 100 * found.rate


def draw_optima(cells: Group, values: pa.Table) -> Iterator[tuple[str, Figure]]:
    """Distributions of the optimal sum of costs on the largest boards, and its middle half over the hole ratio."""
    if not any("sum_of_costs" in cell.quantities for cell in cells):
        return
    kinds = by_kind(cells)
    figure = Figure((2 * PANEL[0], PANEL[1] * len(kinds)), layout="constrained")
    for (left, right), (kind, group) in zip(figure.subplots(len(kinds), 2, squeeze=False), kinds, strict=True):
        size, row = by_size(group)[-1]
        there = [cell for cell in row if _boards_with(cell, "sum_of_costs") >= FEWEST_OF_DISTRIBUTION]
        chosen = sorted({round(place) for place in np.linspace(0, len(there) - 1, DISTRIBUTIONS)}) if there else []
        for n, cell in enumerate(there[place] for place in chosen):
            costs, boards = _pool_distribution(values, cell.cell, "sum_of_costs")
            look = choose_style(n) | {"markevery": max(1, len(costs) // 12), "drawstyle": "steps-post"}
            left.plot(costs, 100 * boards.cumsum() / boards.sum(), **look, label=f"hole ratio {cell.hole_ratio:g}")
        left.set(title=f"{title_of(kind)}, {size}x{size}", xlabel="sum of costs, at most")
        left.set(ylabel="% of solvable boards", ylim=PERCENT)
        if chosen:
            left.legend()
        for n, (side, of) in enumerate(by_size(group)):
            of = [cell for cell in of if _boards_with(cell, "sum_of_costs") >= FEWEST]
            ratios = [cell.hole_ratio for cell in of]
            spread = np.array([cell.quantities["sum_of_costs"].quantiles[1:4] for cell in of]).reshape(-1, 3).T
            means = [cell.quantities["sum_of_costs"].mean for cell in of]
            right.fill_between(ratios, spread[0], spread[2], color=choose_style(n)["color"], alpha=0.12, linewidth=0)
            right.plot(ratios, means, **choose_style(n), label=f"{side}x{side}")
        right.set(
            title=f"{title_of(kind)}: mean and middle half", xlabel="hole ratio", ylabel="optimal sum of costs, steps"
        )
        right.set_ylim(0, None)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), handlelength=3)
    yield "optima", figure


def draw_predictors(cells: Group, values: pa.Table) -> Iterator[tuple[str, Figure]]:
    """The power of each statistic to separate boards with a forced wait from others, on the largest boards."""
    known = (
        *("makespan_bound", "cost_bound", "manhattan", "vertex_conflicts", "target_conflicts", "swap_conflicts"),
        *("cardinal_conflicts", "path_overlap", "mdd_nodes", "mdd_overlap", "components", "largest_component"),
        *("branching", "dead_ends", "corridors", "bottlenecks"),
    )
    (kind, group), *_ = by_kind(cells)
    size, row = by_size(group)[-1]
    row = [cell for cell in row if cell.rates.get("wait_required") and cell.rates["wait_required"].count >= FEWEST]
    names = [name for name in known if any(name in cell.quantities for cell in row)]
    if not names:
        return
    areas = np.array([[measure_area(values, cell.cell, name) for cell in row] for name in names])
    order = np.argsort(np.abs(areas - 0.5).mean(axis=1))
    areas, names = areas[order], [names[place] for place in order]
    figure = Figure((1.9 + 0.72 * max(4, len(row)), 1.4 + 0.27 * len(names)), layout="constrained")
    figure.suptitle(
        f"What predicts a forced wait: {title_of(kind)}, {size}x{size}", x=0.01, ha="left", weight="bold", size=11
    )
    axes = figure.subplots()
    drawn = axes.imshow(np.abs(areas - 0.5), aspect="auto", origin="lower", cmap=MAP, vmin=0, vmax=0.5)
    write_numbers(axes, areas, 0.25, "{:.2f}", np.abs(areas - 0.5))
    axes.set_xticks(range(len(row)), [f"{cell.hole_ratio:g}" for cell in row])
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes.set(xlabel="hole ratio")
    axes.grid(visible=False)
    bar = figure.colorbar(drawn, ax=axes, pad=0.02, ticks=(0, 0.25, 0.5), label="distance from chance")
    bar.ax.set_yticklabels(["0.5", "0.25 or 0.75", "0 or 1"])
    bar.set_label("chance that a board with a forced wait has the larger value")
    yield "predictors", figure


def measure_area(values: pa.Table, cell: str, statistic: str) -> float:
    """The chance that a solvable board with a forced wait has a larger value than one without; ties count half.

    The area under the curve of receiver operating characteristic.
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


def panels_of(cells: Group, title: str, share_y: bool = True) -> tuple[Figure, list[Axes]]:
    """A figure with one panel for each number of agents and wait ratio."""
    kinds = [kind for kind, _ in by_kind(cells)]
    figure = Figure((PANEL[0] * max(len(kinds), 1.4), PANEL[1]), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", weight="bold", size=11)
    panels = list(figure.subplots(1, len(kinds), squeeze=False, sharey=share_y)[0])
    for axes, kind in zip(panels, kinds, strict=True):
        axes.set_title(title_of(kind), weight="normal")
        axes.grid(visible=share_y)
    return figure, panels


def legend_below(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend, and one label of the vertical axis, for all panels."""
    for axes in panels[1:]:
        axes.set_ylabel("")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), handlelength=3)


def write_numbers(
    axes: Axes, numbers: np.ndarray, dark_below: float, form: str, shade: np.ndarray | None = None
) -> None:
    """Writes each number into its field of a map.

    Args:
        axes: The map.
        numbers: float [rows, columns]; none is written where it is NaN.
        dark_below: The shade below which the ink is white.
        form: How a number is written.
        shade: float [rows, columns], what the fields are shaded by; by default the numbers.
    """
    shade = numbers if shade is None else shade
    for (row, column), number in np.ndenumerate(numbers):
        if not np.isnan(number):
            colour = "white" if shade[row, column] < dark_below else "black"
            axes.text(column, row, form.format(number), ha="center", va="center", color=colour, size=7.5)


def by_kind(cells: Group) -> list[tuple[Kind, Group]]:
    """By number of agents, then by wait ratio."""
    kinds = sorted({(cell.agents, cell.wait_ratio) for cell in cells}, key=lambda kind: (kind[0], kind[1] or 0.0))
    return [(kind, [cell for cell in cells if (cell.agents, cell.wait_ratio) == kind]) for kind in kinds]


def by_size(cells: Group) -> list[tuple[int, Group]]:
    """By rising size, each by rising hole ratio."""
    in_order = sorted(cells, key=lambda cell: cell.hole_ratio)
    return [(size, [cell for cell in in_order if cell.size == size]) for size in sorted({cell.size for cell in cells})]


def title_of(kind: Kind) -> str:
    """Such as "3 agents, wait ratio 0.5"."""
    agents, wait = kind
    words = f"{agents} agent{'s' * (agents > 1)}"
    return words if wait is None else f"{words}, wait ratio {wait:g}"
