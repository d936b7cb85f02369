"""Reliability curves: what was expected against what came."""

from collections.abc import Mapping

from lakewright.engineer.difficulty import Calibration
from lakewright.experiments.charts.lines import Point, Series, line_chart


def reliability_chart(found: Mapping[str, Calibration], answers: str = "plans") -> str:
    """The share of valid answers over what was expected of groups, in percent; on the diagonal both agree.

    answers: what answers are called.
    """
    series = [Series("as expected", [Point(0, 0), Point(100, 100)])]
    for name, calibration in found.items():
        bins = calibration.reliability
        points = [
            Point(100 * bin.predicted, 100 * bin.observed, words=f"{bin.groups} groups of {name}") for bin in bins
        ]
        series.append(Series(name, points))
    return line_chart(
        f"Valid {answers}: expected and observed",
        series,
        x_label="% expected by the difficulty model",
        y_label="% observed",
        y_range=(0.0, 100.0),
    )
