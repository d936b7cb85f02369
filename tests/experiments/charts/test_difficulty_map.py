"""The picture of the frontier: every cell of the grid is drawn, with its number."""

import xml.etree.ElementTree as ET

import msgspec
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.engineer.curriculum_cells import Cell
from lakewright.engineer.difficulty import DifficultySettings, Observation, forecast
from lakewright.experiments.charts.difficulty_map import difficulty_svg

CONFIG = EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 7: SizeConfig(0.5, 0.2, 0.5)})
SVG = "{http://www.w3.org/2000/svg}"


def test_each_cell_is_drawn_twice_and_those_that_were_drawn_from_have_a_frame():
    seen = [Observation(Cell(3, 0.1, False), 2, 30, 27.0, 2.0)]
    known = forecast(CONFIG, seen, [], DifficultySettings())
    root = ET.fromstring(difficulty_svg(msgspec.to_builtins(known)))
    boxes = root.findall(f".//{SVG}rect")
    assert len(boxes) == 2 * len(known.grid) == 2 * 2 * 6 * 2
    framed = [box for box in boxes if box.get("stroke")]
    assert len(framed) == 2
    tooltip = framed[0].find(f"{SVG}title")
    assert tooltip is not None
    assert tooltip.text is not None
    assert tooltip.text.endswith("30 groups")
    titles = [text.text for text in root.findall(f".//{SVG}text") if text.get("font-weight")]
    assert titles == [
        f"{name}, {wait}" for name in ("P(valid)", "p (1 - p)") for wait in ("no forced wait", "a forced wait")
    ]


def test_what_is_no_forecast_is_refused():
    with pytest.raises(InputError, match=r"difficulty.json: unknown field 'cells'"):
        difficulty_svg({"cells": []})
