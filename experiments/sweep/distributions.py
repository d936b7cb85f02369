"""Pictures of a sweep's distributions: optimal costs, and which statistics predict a forced wait."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from lakewright.experiments.charts.frame import PERCENT, choose_style
from lakewright.experiments.sweep.cells import CellSummary
from lakewright.experiments.sweep.panels import FEWEST, MAP, PANEL, Group, by_kind, by_size, title_of, write_numbers

DISTRIBUTIONS = 4  # hole ratios whose distributions are drawn
FEWEST_OF_DISTRIBUTION = 100  # boards that a distribution is drawn of


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
        left.set(title=f"{title_of(kind)}, {size}x{size}", xlabel="at most so many steps, sum of costs")
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
