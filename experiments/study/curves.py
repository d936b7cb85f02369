"""The learning curves of a study, on the held-out set of its runs: for each arm the mean over its seeds."""

import numpy as np

from lakewright.experiments.charts.lines import Point, Series, line_chart
from lakewright.experiments.study.results import Results
from lakewright.experiments.study.run_results import RunResult

MOST_CURVES = 8  # with all arms; of more, one cannot be told from another
MOST_RANGES = 4
STEPS = 20  # points of a curve


def curves_svg(results: Results, arms: list[str] | None = None) -> str:
    """The curves of `arms`, by default of all or, of many, of those of most seeds; few have the range of the seeds.

    A run is interpolated.
    """
    names = arms or _to_draw(results)
    grid = np.linspace(0, results.budget, STEPS + 1)
    series = [_make_series(name, [run for run in results.runs if run.arm == name], grid) for name in names]
    if len(series) > MOST_RANGES:
        series = [Series(one.name, [Point(point.x, point.y) for point in one.points]) for one in series]
    answers, problems = ("plans", "boards") if results.lake else ("answers", "problems")
    return line_chart(
        f"Valid {answers} on the {problems} held out in each run",
        series,
        x_label="generated tokens, thousands",
        y_label="valid %",
    )


def _to_draw(results: Results) -> list[str]:
    """All arms, or where they would hide each other, those of most seeds."""
    most = max((arm.seeds for arm in results.arms), default=0)
    few = len(results.arms) <= MOST_CURVES
    return [arm.arm for arm in results.arms if few or arm.seeds == most]


def _make_series(name: str, runs: list[RunResult], grid: np.ndarray) -> Series:
    lines = np.array([_interpolate_run(run, grid) for run in runs])
    rows = zip(grid / 1000, lines.mean(0), lines.min(0), lines.max(0), strict=True)
    points = [Point(float(x), float(y), float(low), float(high)) for x, y, low, high in rows]
    return Series(f"{name} ({len(runs)})", points)


def _interpolate_run(run: RunResult, grid: np.ndarray) -> np.ndarray:
    """A run's valid % at each number of tokens, interpolated between stages."""
    return np.interp(grid, [point.tokens for point in run.curve], [point.valid for point in run.curve])
