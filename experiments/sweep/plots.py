"""The pictures of a sweep, as SVG and PNG: statistics of its cells over hole ratio, size and agents.

Series differ in marker, line and colour, maps run from dark to bright: so they can be read in greyscale.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from lakewright.core_jax.support import write_atomically
from lakewright.experiments.charts.frame import INK, LOOK, PERCENT, choose_style, save_svg
from lakewright.experiments.sweep.cells import CellSummary, Rate, make_rate, summarize_sweep
from lakewright.experiments.sweep.distributions import draw_optima, draw_predictors
from lakewright.experiments.sweep.folder import SweepFolder
from lakewright.experiments.sweep.panels import (
    FEWEST,
    MAP,
    Group,
    by_kind,
    by_size,
    legend_below,
    panels_of,
    write_numbers,
)

THRESHOLD = 0.407254  # holes of an endless map beyond which its free cells have no endless component (Jacobsen, 2015)
Share: TypeAlias = Callable[[CellSummary], Rate | None]


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
            share = _complement_of("solvable_if_connected")
            yield from _draw_lines("blocked", free, title, "% of boards where\neach agent has a path", share)
        if several and strata:
            yield from _draw_lines(
                "acceptance", strata, "Attempts that met their stratum", "% of attempts", _acceptance_of
            )
        if several and len({cell.size for cell in free}) > 1:
            yield from _draw_maps("waits", free, "Forced waits: every cheapest plan waits", "% of solvable boards")
        if several:
            title = "Solvable boards whose shortest paths cannot all be kept"
            yield from _draw_lines(
                "gaps", cells, title, "% of solvable boards", _complement_of("shortest_paths_suffice")
            )
            title = "Boards that shortest paths leave open"
            share = _complement_of("bound_certificate")
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


def _complement_of(name: str) -> Share:
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
