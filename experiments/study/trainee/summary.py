"""The result of the study of the trainee as means, a table and a picture."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from tabulate import tabulate

from lakewright.core_jax.results import pool
from lakewright.core_jax.support import replacing
from lakewright.experiments.study.trainee.records import ARMS, Part, Result


def _figures(part: Part) -> dict[str, float]:
    """Percentages of all boards of a kind."""
    figures = {}
    for kind, sizes in part.outcomes.items():
        outcomes = pool(sizes.values())
        figures[f"{kind} valid"] = 100 * outcomes.rate(outcomes.valid)
        figures[f"{kind} optimal makespan"] = 100 * outcomes.rate(outcomes.optimal_makespan)
        figures[f"{kind} optimal sum of costs"] = 100 * outcomes.rate(outcomes.optimal_sum_of_costs)
    return figures


def summary_of(parts: dict[int, dict[str, Part]]) -> dict[str, dict[str, tuple[float, float]]]:
    """By arm and figure the mean over the seeds and the standard deviation, in percent; parts by seed and arm."""
    summary: dict[str, dict[str, tuple[float, float]]] = {}
    for arm in ARMS:
        rows = [_figures(arms[arm]) for arms in parts.values()]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        spread = {name: float(np.std(column, ddof=1)) if len(column) > 1 else 0.0 for name, column in columns.items()}
        summary[arm] = {name: (float(np.mean(column)), spread[name]) for name, column in columns.items()}
    return summary


def trainee_table(result: Result) -> str:
    """Means and standard deviations over the seeds, in percent."""
    summary = result.summary
    rows = [
        (name, *(f"{summary[arm][name][0]:.1f} ± {summary[arm][name][1]:.1f}" for arm in ARMS))
        for name in summary["warmup"]
    ]
    alignment = ("left", *["right"] * len(ARMS))
    return tabulate(rows, ("", *ARMS.values()), tablefmt="plain", colalign=alignment, disable_numparse=True)


def plot(result: Result, path: Path) -> None:
    """Every seed as a point, the mean as a line."""
    from lakewright.experiments.charts import COLOURS, LOOK, MARKERS

    names = ("natural valid", "forced valid", "natural optimal sum of costs", "forced optimal sum of costs")
    with matplotlib.rc_context(LOOK | {"svg.hashsalt": "study"}), replacing(path) as beside:
        figure = Figure((9.2, 3.6), layout="constrained")
        axes = figure.subplots()
        for i, arm in enumerate(ARMS):
            at = np.arange(len(names)) + 0.26 * (i - 1)
            means = [result.summary[arm][name][0] for name in names]
            axes.hlines(means, at - 0.11, at + 0.11, color=COLOURS[i], alpha=0.5)
            for seed, arms in result.parts.items():
                figures = _figures(arms[arm])
                label = ARMS[arm] if not seed else None
                points = [figures[name] for name in names]
                axes.plot(at, points, linestyle="", marker=MARKERS[i], color=COLOURS[i], label=label)
        axes.set(ylabel="% of boards")
        axes.set_xticks(range(len(names)), [name.replace(" optimal", "\noptimal") for name in names])
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=len(ARMS))
        figure.savefig(beside, format="svg", metadata={"Date": None})
