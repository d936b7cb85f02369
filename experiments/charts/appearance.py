"""The appearance of curves and charts: ink, colours, markers, lines."""

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#2b3440"
LOOK: Any = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.2,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "svg.fonttype": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
}
# Okabe and Ito's colours, which colour-blind people can distinguish; markers and lines differ too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f94", "#b8a800")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)), (0, (8, 2)))
PERCENT = (-2, 102)  # with room for the markers


def choose_style(n: int) -> dict[str, Any]:
    """The look of series number `n`, for matplotlib."""
    n %= len(COLOURS)
    return {"color": COLOURS[n], "marker": MARKERS[n], "linestyle": LINES[n]}


def save_svg(figure: "Figure") -> str:
    """A figure as SVG, the same bytes each time."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue().replace("'DejaVu Sans'", "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif")
