"""The picture of a redesign: what the policy asked for, and its plans before and after it was trained on that."""

from collections.abc import Mapping
from typing import Any

from lakewright.experiments.viewer.charts.frame import join_pictures
from lakewright.experiments.viewer.charts.heat import heat_map

KNOBS = {"data_ratio": "of data", "hole_ratio": "holes", "wait_ratio": "waits"}  # by column of a config
WIDE = 250  # of each of the three


def draw_redesign(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Three heat maps by map size as one SVG: the boards of two configs, and valid plans before and after the second.

    before, after: the warm-up or a stage, and the next stage, of `lakewright report --json`; a trial after the first
    compared the two configs.
    """
    current = before | {"config": before["trial"]["candidates"][0]["config"]}
    boards = [_draw_boards(current, "Boards before"), _draw_boards(after, "Boards after the redesign")]
    valid = [[_valid(stage, size) for stage in (before, after)] for size in after["sizes"]]
    answers = _draw_map("Valid held-out plans", ["before", "after"], after, valid)
    return join_pictures([*boards, answers])


def _draw_boards(stage: Mapping[str, Any], title: str) -> str:
    """What the boards of a stage were drawn from, in percent."""
    sizes = stage["config"]["sizes"].values()
    values = [[100 * size[knob] for knob in KNOBS] for size in sizes]
    return _draw_map(title, list(KNOBS.values()), stage, values)


def _draw_map(title: str, columns: list[str], stage: Mapping[str, Any], values: list[list[float]]) -> str:
    sizes = [f"{size}x{size}" for size in stage["sizes"]]
    return heat_map(title, sizes, columns, values, "percent", top=100, least=WIDE)


def _valid(stage: Mapping[str, Any], size: str) -> float:
    return 100 * stage["sizes"][size]["valid"] / stage["sizes"][size]["boards"]
