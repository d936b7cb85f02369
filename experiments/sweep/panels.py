"""The parts that pictures of a sweep share: panels by number of agents, legends, numbers in maps."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lakewright.experiments.sweep.cells import CellSummary

MAP = "cividis"  # of even steps in brightness
PANEL = (4.3, 3.6)  # inches
FEWEST = 30  # boards that a share or a quantile is drawn of
Kind: TypeAlias = tuple[int, float | None]  # agents and wait ratio
Group: TypeAlias = list[CellSummary]


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
