"""Pictures of a study: arms against the baseline, or trial scores against gains in training, and learning curves."""

from collections.abc import Callable, Iterable

import numpy as np

from lakewright.experiments.studies.inference import Rank, TrialPrediction
from lakewright.experiments.studies.results import ArmResult, Results
from lakewright.experiments.studies.run_results import RunResult
from lakewright.experiments.viewer.charts.frame import COLOURS, join_pictures
from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart
from lakewright.experiments.viewer.charts.rows import ChartRow, Mark, row_chart

MOST_CURVES = 8  # with all arms; of more, one cannot be told from another
MOST_RANGES = 4
STEPS = 20  # points of a curve
NARROW = 170  # pixels, the two charts beside that of the final results


def study_svg(results: Results) -> str:
    """One picture on white."""
    if results.prediction:
        return _draw_prediction(results.prediction, results.words.answers)
    return _draw_arms(results)


def _draw_arms(results: Results) -> str:
    """The arms by their last policies and, if known, by how they came there."""
    arms = sorted(results.arms, key=lambda arm: -arm.valid)
    charts = [_draw_finals(arms, results)]
    if any(arm.to_best for arm in arms):
        charts += [_draw_along(arms, results), _draw_reached(arms, results)]
    return join_pictures(charts)


def _draw_finals(arms: list[ArmResult], results: Results) -> str:
    """The last policies on held-out problems, their seeds, and their intervals against the baseline."""
    problems, answers = results.words.problems, results.words.answers
    rows = _make_rows(arms, results, lambda run: run.valid, _mark_mean)
    return row_chart(
        f"After {results.budget:,} generated tokens (seeds)",
        [row._replace(name=f"{row.name} ({arm.seeds})") for row, arm in zip(rows, arms, strict=True)],
        x_label=f"valid {answers} on {results.held_out} held-out {problems}, %\n"
        f"diamonds: means; rings: seeds;\nbars: 95 % against the baseline, by {problems}",
        lines={arm.valid: "" for arm in arms if arm.arm == results.baseline} | {results.valid: "warm-up"},
    )


def _draw_along(arms: list[ArmResult], results: Results) -> str:
    """The mean of each arm's learning curves over the tokens of a run."""
    rows = _make_rows(arms, results, lambda run: run.along, lambda arm: _mark(arm.along))
    label = "valid on the runs' held-out set,\nmean over their tokens, %"
    return row_chart("Along the way", rows, x_label=label, named=False, wide=NARROW)


def _draw_reached(arms: list[ArmResult], results: Results) -> str:
    """When each arm is as good on that set as the baseline at its best; nothing if it isn't."""
    rows = _make_rows(
        arms,
        results,
        lambda run: _to_thousands(run.to_best),
        lambda arm: _mark(_to_thousands(arm.to_best.tokens if arm.to_best else None)),
    )
    return row_chart(
        f"Until {results.baseline}'s best",
        rows,
        x_label="generated tokens, thousands\ndiamonds: medians",
        x_range=(0, results.budget / 1000),
        named=False,
        wide=NARROW,
    )


def _make_rows(
    arms: Iterable[ArmResult],
    results: Results,
    of_run: Callable[[RunResult], float | None],
    of_arm: Callable[[ArmResult], Mark | None],
) -> list[ChartRow]:
    """A row for each arm, with a ring for each seed and a mark for all; the baseline has a colour of its own."""
    rows = []
    for arm in arms:
        colour = COLOURS[1 if arm.arm == results.baseline else 0]
        runs = [(run.seed, of_run(run)) for run in results.runs if run.arm == arm.arm]
        seeds = [Mark(x, "ring", colour, words=f"seed {seed}: {x:.4g}") for seed, x in runs if x is not None and x == x]
        mean = of_arm(arm)
        rows.append(ChartRow(arm.arm, seeds + ([mean._replace(colour=colour)] if mean else [])))
    return rows


def _to_thousands(tokens: float | None) -> float | None:
    return None if tokens is None else tokens / 1000


def _mark(x: float | None) -> Mark | None:
    return None if x is None else Mark(x, "mean")


def _mark_mean(arm: ArmResult) -> Mark:
    half = arm.against.interval if arm.against else None
    return Mark(arm.valid, "mean", interval=None if half is None else (arm.valid - half, arm.valid + half))


def _draw_prediction(found: TrialPrediction, answers: str) -> str:
    share = [100 * value for value in found.informative]
    return join_pictures(
        [
            _draw_scatter(found.scores, found.gains, "the trial's score", found.by_score),
            _draw_scatter(share, found.gains, "informative groups, %", found.by_informative),
        ],
        f"Gain in valid {answers} after training",
    )


def _draw_scatter(x: list[float], y: list[float], name: str, rank: Rank | None) -> str:
    """Points, their line of least squares if they have a rank correlation, and zero."""
    series = [Series("configs", [Point(*pair) for pair in zip(x, y, strict=True)], joined=False)]
    ends = np.array([min(x), max(x)])
    if rank:
        slope, height = np.polyfit(x, y, 1)
        series.append(Series("least squares", _join(ends, slope * ends + height), marked=False))
    series.append(Series("no gain", _join(ends, 0 * ends), marked=False))
    title = f"rank correlation {rank.rho:+.2f}" if rank else "all alike"
    return line_chart(title, series, x_label=f"{name}, before training", y_label="points")


def _join(x: np.ndarray, y: np.ndarray) -> list[Point]:
    return [Point(float(one), float(other)) for one, other in zip(x, y, strict=True)]


def curves_svg(results: Results, arms: list[str] | None = None) -> str:
    """The curves of `arms`, by default of all or, of many, of the arms with most seeds; few have the range of the
    seeds.

    A run is interpolated.
    """
    names = arms or _to_draw(results)
    grid = np.linspace(0, results.budget, STEPS + 1)
    series = [_make_series(name, [run for run in results.runs if run.arm == name], grid) for name in names]
    if len(series) > MOST_RANGES:
        series = [Series(one.name, [Point(point.x, point.y) for point in one.points]) for one in series]
    problems, answers = results.words.problems, results.words.answers
    return line_chart(
        f"Valid {answers} on the {problems} held out in each run",
        series,
        x_label="generated tokens, thousands",
        y_label="valid %",
    )


def _to_draw(results: Results) -> list[str]:
    """All arms, or if they would hide each other, the ones with most seeds."""
    most = max((arm.seeds for arm in results.arms), default=0)
    few = len(results.arms) <= MOST_CURVES
    return [arm.arm for arm in results.arms if few or arm.seeds == most]


def _make_series(name: str, runs: list[RunResult], grid: np.ndarray) -> Series:
    curves = [([point.tokens for point in run.curve], [point.valid for point in run.curve]) for run in runs]
    lines = np.array([np.interp(grid, *curve) for curve in curves])
    rows = zip(grid / 1000, lines.mean(0), lines.min(0), lines.max(0), strict=True)
    points = [Point(float(x), float(y), float(low), float(high)) for x, y, low, high in rows]
    return Series(f"{name} ({len(runs)})", points)
