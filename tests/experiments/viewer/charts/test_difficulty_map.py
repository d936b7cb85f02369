"""The picture of the frontier: every cell of the grid is drawn, with its number."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.cells import Cell, Knob
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import DifficultySettings, Forecast, Observation, make_forecast
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.environments.lake import design_of, lake_space
from lakewright.experiments.loop.records.stage_records import read_record
from lakewright.experiments.viewer.charts.heat import difficulty_panels
from tests.support.refusals import refused

CONFIG = EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 7: SizeConfig(0.5, 0.2, 0.5)})
SVG = "{http://www.w3.org/2000/svg}"


def draw(design: Design, space: DesignSpace, *seen: Observation) -> tuple[Forecast, ET.Element]:
    """The forecast of a design, and its pictures."""
    known = make_forecast(design, seen, [], DifficultySettings(), space)
    return known, ET.fromstring(f"<all>{''.join(difficulty_panels(known, space))}</all>")


def texts_of(root: ET.Element, **attributes: str) -> list[str]:
    """The texts of a picture that have these attributes."""
    found = root.findall(f".//{SVG}text")
    return [text.text or "" for text in found if all(text.get(name) == value for name, value in attributes.items())]


def test_each_cell_is_drawn_twice_and_those_that_were_drawn_from_have_a_frame():
    seen = Observation(Cell(3, (0.1, False), (2,)), 30, 27.0, 2.0)
    known, root = draw(design_of(CONFIG), lake_space(), seen)
    boxes = root.findall(f".//{SVG}rect")
    assert len(boxes) == 2 * len(known.grid) == 2 * 2 * 6 * 2
    framed = [box for box in boxes if box.get("stroke")]
    assert len(framed) == 2
    tooltip = framed[0].find(f"{SVG}title")
    assert tooltip is not None
    assert tooltip.text is not None
    assert tooltip.text.endswith("30 groups")
    assert texts_of(root, **{"font-weight": "bold"}) == [
        f"{name}, {wait}" for name in ("P(valid)", "p (1 - p)") for wait in ("no forced wait", "a forced wait")
    ]


def test_any_environment_has_its_strata_its_level_and_a_panel_for_each_combination_of_traits():
    digits = Knob(name="digits", low=1, high=3, whole=True)
    space = DesignSpace(("short", "long"), (digits, Knob(name="carry", trait=True), Knob(name="zero", trait=True)))
    known, root = draw(space.uniform(), space)
    assert len(root.findall(f".//{SVG}rect")) == 2 * len(known.grid) == 2 * 2 * 3 * 4
    assert texts_of(root, **{"font-weight": "bold"})[:4] == [
        "P(valid), no carry, no zero",
        "P(valid), no carry, zero",
        "P(valid), carry, no zero",
        "P(valid), carry, zero",
    ]
    assert {"short", "1", "2", "3"} <= set(texts_of(root))


@pytest.mark.parametrize("knobs", [(), (Knob(name="carry", trait=True),)])
def test_without_a_level_there_is_one_column(knobs):
    space = DesignSpace(("short", "long"), knobs)
    known, root = draw(space.uniform(), space)
    assert len(root.findall(f".//{SVG}rect")) == 2 * len(known.grid)
    assert texts_of(root, **{"font-weight": "bold"})[0] == ("P(valid), no carry" if knobs else "P(valid)")


def test_what_is_no_forecast_is_refused(tmp_path: Path):
    path = tmp_path / "difficulty.json"
    path.write_text('{"cells": []}')
    with refused("difficulty.json:", "'cells'"):
        read_record(path, Forecast)
