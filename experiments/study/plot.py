"""The picture of a study: the arms and the baseline, or the trial's scores and the gains in training."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lakewright.experiments.charts.appearance import COLOURS, INK, LOOK, save_svg
from lakewright.experiments.study.prediction import Prediction, Rank
from lakewright.experiments.study.results import Results

ROW = 0.3  # inches for each arm


def study_svg(results: Results) -> str:
    """One picture on white."""
    with matplotlib.rc_context(LOOK | {"svg.hashsalt": "study"}):
        if results.prediction:
            return save_svg(_draw_prediction(results.prediction))
        return save_svg(_draw_arms(results))


def _draw_arms(results: Results) -> Figure:
    arms = sorted(results.arms, key=lambda arm: arm.valid)
    figure = Figure((8.4, 1.6 + ROW * len(arms)), layout="constrained")
    axes = figure.subplots()
    for row, arm in enumerate(arms):
        seeds = [run.valid for run in results.runs if run.arm == arm.arm]
        colour = COLOURS[1 if arm.arm == results.baseline else 0]
        axes.plot(seeds, [row] * len(seeds), "o", color=colour, markerfacecolor="none", markersize=5)
        axes.plot(arm.valid, row, "D", color=colour, markersize=6)
        if arm.against:
            axes.errorbar(arm.valid, row, xerr=arm.against.interval, color=colour, linewidth=1, alpha=0.5)
        if arm.arm == results.baseline:
            axes.axvline(arm.valid, color=colour, linewidth=1.2, linestyle="--")
    axes.axvline(results.valid, color=INK, linewidth=1, linestyle=":")
    axes.text(results.valid, 1, " warm-up", transform=axes.get_xaxis_transform(), va="bottom", ha="center", size=8)
    axes.set_yticks(range(len(arms)), [f"{arm.arm} ({arm.seeds})" for arm in arms])
    axes.set_ylim(-0.7, len(arms) - 0.3)
    axes.set_xlabel(
        f"valid plans on {results.held_out} held-out boards, %\n"
        "diamonds: means; circles: seeds; bars: 95 % against the baseline, by boards"
    )
    axes.set_title(f"After {results.budget:,} generated tokens from one warm-up (seeds)", pad=18)
    return figure


def _draw_prediction(found: Prediction) -> Figure:
    figure = Figure((8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    share = [100 * value for value in found.informative]
    _draw_scatter(left, found.scores, found.gains, "the trial's score", found.by_score)
    _draw_scatter(right, share, found.gains, "informative groups, %", found.by_informative)
    left.set_ylabel("gain in valid plans after training, points")
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
