"""The rule that follows the forecast in steps, from what the evidence in tokens shows of it."""

import jax
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import edit_design
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty import CellForecast, DifficultyModel, Forecast, Objective
from lakewright.engineer.evidence import TOO_EASY, delta_tokens, read_tokens, vocabulary_of
from lakewright.engineer.space import normalize_rows
from lakewright.engineer.teachers import ForecastTeacher, make_teacher
from lakewright.experiments.environments.lake import design_of, lake_space
from tests.support.samples.evidence import SPACE, everything

SIZES = (3, 4, 6)
DESIGN = design_of(EnvConfig(dict.fromkeys(SIZES, SizeConfig(1 / 3, 0.2, 0.5))))
FORECAST_HOLES = SPACE.knobs[0].told
rates = st.tuples(*[st.tuples(*[st.floats(0, 1)] * 4)] * len(SIZES))


def known(p: dict[Cell, float], objective: Objective = "regret", reach: float = 0.0, groups: float = 50) -> Forecast:
    """A forecast with this P(valid) of cells, and one of cells of which the tokens tell nothing."""
    model = DifficultyModel([], [], groups, 1.0, objective, 0.0, reach)
    hidden = {Cell(size, (0.5, False)): 0.0 for size in SIZES}
    return Forecast(model, [CellForecast(cell, value, 0.0, 0.0, 0) for cell, value in (p | hidden).items()], [], 1, 0.5)


def cells(free: dict[int, float], forced: dict[int, float]) -> dict[Cell, float]:
    """The same P(valid) at each hole ratio."""
    parts = (False, free), (True, forced)
    return {Cell(size, (hole, wait)): part[size] for size in SIZES for hole in FORECAST_HOLES for wait, part in parts}


def proposed(forecast: Forecast, design: Design = DESIGN, power: float = 1.0) -> Delta:
    evidence, space = everything(design, {}, forecast=forecast), lake_space(several=design.given["agents"] > 1)
    delta = make_teacher("forecast", options={"power": power}).propose(evidence, design, space, jax.random.key(0)).delta
    assert delta is not None
    return delta


def data(delta: Delta) -> dict[int, float]:
    """The change of the data ratio of each size that is edited."""
    return {int(size): edit.changes["data_ratio"] for size, edit in delta.edits.items()}


def settle(forecast: Forecast, power: float = 1.0) -> dict[int, SizeConfig]:
    """The sizes after many redesigns by the same forecast."""
    design = DESIGN
    for _ in range(25):
        rows = edit_design(design, proposed(forecast, design, power), SPACE)
        design = design.replace(normalize_rows(rows, SPACE))
    return {int(size): SizeConfig(**row) for size, row in design.strata.items()}


def test_data_and_waits_go_by_two_steps_to_what_is_worth_most():
    edits = proposed(known(cells({3: 0.9, 4: 0.5, 6: 0.9}, {3: 0.9, 4: 0.0, 6: 0.9}))).edits
    assert (edits[4].changes["data_ratio"], edits[4].changes["wait_ratio"]) == pytest.approx((0.1, 0.2))
    assert edits[3].changes["data_ratio"] == pytest.approx(-0.1)
    assert edits[3].reason == vocabulary_of(SPACE).reasons[TOO_EASY]


def test_it_settles_where_data_are_in_proportion_to_the_worth_of_cells():
    sizes = settle(known(cells({3: 0.9, 4: 0.5, 6: 0.4}, {3: 0.7, 4: 0.1, 6: 0.4})))
    assert [sizes[size].data_ratio for size in SIZES] == pytest.approx([0.4 / 3, 1.4 / 3, 1.2 / 3], abs=0.05)
    assert [sizes[size].wait_ratio for size in SIZES] == pytest.approx([0.75, 0.9 / 1.4, 0.5], abs=0.1)


def test_learnability_is_largest_at_one_half():
    sizes = settle(known(cells({3: 1.0, 4: 0.5, 6: 0.0}, {3: 1.0, 4: 0.5, 6: 0.0}), "learnability"))
    assert sizes[4].data_ratio > 0.9


def test_reach_leaves_maps_alone_on_which_even_easier_boards_fail():
    p = cells({3: 0.9, 4: 0.9, 6: 0.1}, {3: 0.9, 4: 0.1, 6: 0.0})
    without, within = settle(known(p)), settle(known(p, reach=1.0))
    assert without[6].data_ratio > without[4].data_ratio
    assert within[4].data_ratio > 2 * within[6].data_ratio
    assert within[4].wait_ratio > 0.85


def test_a_larger_power_moves_more_data_to_the_best():
    p = cells({3: 0.8, 4: 0.6, 6: 0.4}, {3: 0.8, 4: 0.6, 6: 0.4})
    assert settle(known(p), 3.0)[6].data_ratio > settle(known(p))[6].data_ratio + 0.1


def test_without_a_forecast_or_any_rollout_nothing_changes():
    assert proposed(known(cells({3: 1, 4: 0.5, 6: 0}, {3: 1, 4: 0.5, 6: 0}), groups=0)) == Delta({})
    assert ForecastTeacher().make_delta(everything(DESIGN, {}), DESIGN, SPACE) == Delta({})


def test_where_no_board_is_worth_anything_nothing_changes():
    failing, solved = dict.fromkeys(SIZES, 0.0), dict.fromkeys(SIZES, 1.0)
    assert proposed(known(cells(failing, failing), reach=1.0), power=3.0) == Delta({})
    assert proposed(known(cells(solved, solved)), power=3.0) == Delta({})


def test_a_forecast_that_lacks_a_size_changes_nothing():
    p = cells({3: 0.9, 4: 0.5, 6: 0.1}, {3: 0.9, 4: 0.5, 6: 0.1})
    assert proposed(known(p)).edits
    lacking = Forecast(known(p).model, [cell for cell in known(p).grid if cell.cell.stratum != 4], [], 1, 0.5)
    assert proposed(lacking) == Delta({})


def test_a_single_agent_has_no_forced_waits_to_go_to():
    design = design_of(EnvConfig(dict.fromkeys(SIZES, SizeConfig(1 / 3, 0.2, 0.0)), agents=1))
    both = cells({3: 0.9, 4: 0.5, 6: 0.1}, {3: 0, 4: 0, 6: 0})
    delta = proposed(known({cell: p for cell, p in both.items() if not cell.values[1]}, reach=1.0), design)
    assert data(delta)[4] > 0 > data(delta)[6]
    assert not any(edit.changes["wait_ratio"] for edit in delta.edits.values())


@given(rates, st.sampled_from(["regret", "learnability"]), st.floats(0, 2), st.floats(0.1, 5), st.integers(0, 99))
def test_every_answer_has_a_form_in_tokens(p, objective, reach, power, seed):
    rng = np.random.default_rng(seed)
    shares, holes, waits = rng.dirichlet([1.0] * 3), rng.uniform(0, 0.5, 3), rng.uniform(0, 1, 3)
    columns = [column.name for column in SPACE.columns]
    rows = (dict(zip(columns, row, strict=True)) for row in zip(shares, holes, waits, strict=True))
    design = DESIGN.replace(normalize_rows(dict(zip(SIZES, rows, strict=True)), SPACE))
    places = [(hole, wait) for hole in FORECAST_HOLES for wait in (False, True)]
    found = {Cell(s, place): p for s, row in zip(SIZES, p, strict=True) for place, p in zip(places, row, strict=True)}
    forecast = known(found, objective, reach)
    delta = proposed(forecast, design, power)
    assert read_tokens(delta_tokens(delta, SPACE), SPACE).edits.keys() == delta.edits.keys(), (design, found)


def test_the_objective_is_that_of_the_model():
    forecast = known(cells({3: 0.9, 4: 0.5, 6: 0.1}, {3: 0.9, 4: 0.5, 6: 0.1}))
    learning = msgspec.structs.replace(
        forecast, model=msgspec.structs.replace(forecast.model, objective="learnability")
    )
    assert data(proposed(forecast))[6] > 0 > data(proposed(learning))[6]
