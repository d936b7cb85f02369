"""Plots of a study: arms against the baseline, or trial scores against gains in training, and learning curves."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lakewright.experiments.charts.frame import COLOURS, INK, LOOK, save_svg
from lakewright.experiments.charts.lines import Point, Series, line_chart
from lakewright.experiments.study.inference import Prediction, Rank
from lakewright.experiments.study.results import ArmResult, Results
from lakewright.experiments.study.run_results import RunResult

ROW = 0.3  # inches for each arm
MOST_CURVES = 8  # with all arms; of more, one cannot be told from another
MOST_RANGES = 4
STEPS = 20  # points of a curve


def study_svg(results: Results) -> str:
    """One picture on white."""
    with matplotlib.rc_context(LOOK | {"svg.hashsalt": "study"}):
        if results.prediction:
            return save_svg(_draw_prediction(results.prediction, "plans" if results.lake else "answers"))
        return save_svg(_draw_arms(results))


def _draw_arms(results: Results) -> Figure:
    """The arms by their last policies and, where known, by how they came there."""
    arms, known = sorted(results.arms, key=lambda arm: arm.valid), any(arm.to_best for arm in results.arms)
    figure = Figure((11.6 if known else 8.4, 1.6 + ROW * len(arms)), layout="constrained")
    if known:
        axes, along, soon = figure.subplots(1, 3, sharey=True, width_ratios=(5, 2, 2))
        _draw_along(along, arms, results)
        _draw_reached(soon, arms, results)
    else:
        axes = figure.subplots()
    for row, arm in enumerate(arms):
        colour = _choose_colour(arm, results)
        _draw_seeds(axes, row, [run.valid for run in results.runs if run.arm == arm.arm], colour)
        axes.plot(arm.valid, row, "D", color=colour, markersize=6)
        if arm.against:
            axes.errorbar(arm.valid, row, xerr=arm.against.interval, color=colour, linewidth=1, alpha=0.5)
        if arm.arm == results.baseline:
            axes.axvline(arm.valid, color=colour, linewidth=1.2, linestyle="--")
    axes.axvline(results.valid, color=INK, linewidth=1, linestyle=":")
    axes.text(results.valid, 1, " warm-up", transform=axes.get_xaxis_transform(), va="bottom", ha="center", size=8)
    axes.set_yticks(range(len(arms)), [f"{arm.arm} ({arm.seeds})" for arm in arms])
    axes.set_ylim(-0.7, len(arms) - 0.3)
    answers, problems = ("plans", "boards") if results.lake else ("answers", "problems")
    axes.set_xlabel(
        f"valid {answers} on {results.held_out} held-out {problems}, %\n"
        f"diamonds: means; circles: seeds; bars: 95 % against the baseline, by {problems}"
    )
    axes.set_title(f"After {results.budget:,} generated tokens from one warm-up (seeds)", pad=18)
    return figure


def _draw_along(axes: Axes, arms: list[ArmResult], results: Results) -> None:
    """The mean of each arm's learning curves over the tokens of a run."""
    for row, arm in enumerate(arms):
        colour = _choose_colour(arm, results)
        seeds = [run.along for run in results.runs if run.arm == arm.arm and run.along is not None]
        _draw_seeds(axes, row, seeds, colour)
        if arm.along is not None:
            axes.plot(arm.along, row, "D", color=colour, markersize=6)
    axes.set_xlabel("valid on the runs' held-out set,\nmean over their tokens, %")
    axes.set_title("Along the way", pad=18)


def _draw_reached(axes: Axes, arms: list[ArmResult], results: Results) -> None:
    """When each arm is as good on that set as the baseline at its best; nothing where it is not."""
    for row, arm in enumerate(arms):
        colour = _choose_colour(arm, results)
        seeds = [run.to_best / 1000 for run in results.runs if run.arm == arm.arm and run.to_best is not None]
        _draw_seeds(axes, row, seeds, colour)
        if arm.to_best and arm.to_best.tokens is not None:
            axes.plot(arm.to_best.tokens / 1000, row, "D", color=colour, markersize=6)
    axes.set_xlim(0, results.budget / 1000)
    axes.set_xlabel("generated tokens, thousands\ndiamonds: medians")
    axes.set_title(f"Until {results.baseline}'s best", pad=18)


def _draw_seeds(axes: Axes, row: int, seeds: list[float], colour: str) -> None:
    axes.plot(seeds, [row] * len(seeds), "o", color=colour, markerfacecolor="none", markersize=5)


def _choose_colour(arm: ArmResult, results: Results) -> str:
    return COLOURS[1 if arm.arm == results.baseline else 0]


def _draw_prediction(found: Prediction, answers: str) -> Figure:
    figure = Figure((8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    share = [100 * value for value in found.informative]
    _draw_scatter(left, found.scores, found.gains, "the trial's score", found.by_score)
    _draw_scatter(right, share, found.gains, "informative groups, %", found.by_informative)
    left.set_ylabel(f"gain in valid {answers} after training, points")
    return figure


def _draw_scatter(axes: Axes, x: list[float], y: list[float], name: str, rank: Rank | None) -> None:
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.plot(x, y, "o", color=COLOURS[0], markerfacecolor="none")
    if rank:
        slope, height = np.polyfit(x, y, 1)
        ends = np.array([min(x), max(x)])
        axes.plot(ends, slope * ends + height, "--", color=COLOURS[1], linewidth=1.2)
    axes.set_title(f"rank correlation {rank.rho:+.2f}" if rank else "all alike")
    axes.set_xlabel(f"{name}, before training")


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
