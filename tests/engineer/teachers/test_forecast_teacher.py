"""The rule that follows the forecast in steps, from what the evidence in tokens shows of it."""

import jax
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.curriculum_cells import Cell
from lakewright.engineer.delta import ConfigDelta, edited, normalised
from lakewright.engineer.difficulty import CellForecast, DifficultyModel, Forecast, Objective
from lakewright.engineer.evidence import FORECAST_HOLES, REASONS, TOO_EASY, delta_tokens, tokens_delta
from lakewright.engineer.teachers import ForecastTeacher, make_teacher
from tests.support.samples.evidence import everything

SIZES = (3, 4, 6)
CONFIG = EnvConfig(dict.fromkeys(SIZES, SizeConfig(1 / 3, 0.2, 0.5)))
rates = st.tuples(*[st.tuples(*[st.floats(0, 1)] * 4)] * len(SIZES))


def known(p: dict[Cell, float], objective: Objective = "regret", reach: float = 0.0, groups: float = 50) -> Forecast:
    """A forecast with this P(valid) of cells, and one of cells of which the tokens tell nothing."""
    model = DifficultyModel([], [], groups, 1.0, objective, 0.0, reach)
    hidden = {Cell(size, 0.5, False): 0.0 for size in SIZES}
    return Forecast(model, [CellForecast(cell, value, 0.0, 0.0, 0) for cell, value in (p | hidden).items()], [], 1, 0.5)


def cells(free: dict[int, float], forced: dict[int, float]) -> dict[Cell, float]:
    """The same P(valid) at each hole ratio."""
    parts = (False, free), (True, forced)
    return {Cell(size, hole, wait): part[size] for size in SIZES for hole in FORECAST_HOLES for wait, part in parts}


def with_waits(ratio: float) -> dict[int, SizeConfig]:
    return {size: SizeConfig(cell.data_ratio, cell.hole_ratio, ratio) for size, cell in CONFIG.sizes.items()}


def proposed(forecast: Forecast, config: EnvConfig = CONFIG, power: float = 1.0) -> ConfigDelta:
    evidence = everything(config, {}, forecast=forecast)
    delta = make_teacher("forecast", options={"power": power}).propose(evidence, config, jax.random.key(0)).delta
    assert delta is not None
    return delta


def settled(forecast: Forecast, power: float = 1.0) -> EnvConfig:
    """The config after many redesigns by the same forecast."""
    config = CONFIG
    for _ in range(25):
        config = config.replace(normalised(edited(config, proposed(forecast, config, power))))
    return config


def test_data_and_waits_go_by_two_steps_to_what_is_worth_most():
    edits = proposed(known(cells({3: 0.9, 4: 0.5, 6: 0.9}, {3: 0.9, 4: 0.0, 6: 0.9}))).edits
    assert (edits[4].data_ratio, edits[4].wait_ratio) == pytest.approx((0.1, 0.2))
    assert edits[3].data_ratio == pytest.approx(-0.1)
    assert edits[3].reason == REASONS[TOO_EASY]


def test_it_settles_where_data_are_in_proportion_to_the_worth_of_cells():
    config = settled(known(cells({3: 0.9, 4: 0.5, 6: 0.4}, {3: 0.7, 4: 0.1, 6: 0.4})))
    assert [config.sizes[size].data_ratio for size in SIZES] == pytest.approx([0.4 / 3, 1.4 / 3, 1.2 / 3], abs=0.05)
    assert [config.sizes[size].wait_ratio for size in SIZES] == pytest.approx([0.75, 0.9 / 1.4, 0.5], abs=0.1)


def test_learnability_is_largest_at_one_half():
    config = settled(known(cells({3: 1.0, 4: 0.5, 6: 0.0}, {3: 1.0, 4: 0.5, 6: 0.0}), "learnability"))
    assert config.sizes[4].data_ratio > 0.9


def test_reach_leaves_maps_alone_on_which_even_easier_boards_fail():
    p = cells({3: 0.9, 4: 0.9, 6: 0.1}, {3: 0.9, 4: 0.1, 6: 0.0})
    without, within = settled(known(p)), settled(known(p, reach=1.0))
    assert without.sizes[6].data_ratio > without.sizes[4].data_ratio
    assert within.sizes[4].data_ratio > 2 * within.sizes[6].data_ratio
    assert within.sizes[4].wait_ratio > 0.85


def test_a_larger_power_moves_more_data_to_the_best():
    p = cells({3: 0.8, 4: 0.6, 6: 0.4}, {3: 0.8, 4: 0.6, 6: 0.4})
    assert settled(known(p), 3.0).sizes[6].data_ratio > settled(known(p)).sizes[6].data_ratio + 0.1


def test_without_a_forecast_or_any_rollout_nothing_changes():
    assert proposed(known(cells({3: 1, 4: 0.5, 6: 0}, {3: 1, 4: 0.5, 6: 0}), groups=0)) == ConfigDelta({})
    assert ForecastTeacher().delta(everything(CONFIG, {}), CONFIG) == ConfigDelta({})


def test_where_no_board_is_worth_anything_nothing_changes():
    failing, solved = dict.fromkeys(SIZES, 0.0), dict.fromkeys(SIZES, 1.0)
    assert proposed(known(cells(failing, failing), reach=1.0), power=3.0) == ConfigDelta({})
    assert proposed(known(cells(solved, solved)), power=3.0) == ConfigDelta({})


def test_a_forecast_that_lacks_a_size_changes_nothing():
    p = cells({3: 0.9, 4: 0.5, 6: 0.1}, {3: 0.9, 4: 0.5, 6: 0.1})
    assert proposed(known(p)).edits
    lacking = Forecast(known(p).model, [cell for cell in known(p).grid if cell.cell.size != 4], [], 1, 0.5)
    assert proposed(lacking) == ConfigDelta({})


def test_a_single_agent_has_no_forced_waits_to_go_to():
    config = EnvConfig(CONFIG.sizes, agents=1)
    alone = {cell: p for cell, p in cells({3: 0.9, 4: 0.5, 6: 0.1}, {3: 0, 4: 0, 6: 0}).items() if not cell.forced}
    edits = proposed(known(alone, reach=1.0), config.replace(with_waits(0.0))).edits
    assert edits[4].data_ratio > 0 > edits[6].data_ratio
    assert not any(edit.wait_ratio for edit in edits.values())


@given(rates, st.sampled_from(["regret", "learnability"]), st.floats(0, 2), st.floats(0.1, 5), st.integers(0, 99))
def test_every_answer_has_a_form_in_tokens(p, objective, reach, power, seed):
    rng = np.random.default_rng(seed)
    shares, holes, waits = rng.dirichlet([1.0] * 3), rng.uniform(0, 0.5, 3), rng.uniform(0, 1, 3)
    config = EnvConfig(normalised(dict(zip(SIZES, map(SizeConfig, shares, holes, waits), strict=True))))
    places = [(hole, wait) for hole in FORECAST_HOLES for wait in (False, True)]
    found = {Cell(s, *place): p for s, row in zip(SIZES, p, strict=True) for place, p in zip(places, row, strict=True)}
    forecast = known(found, objective, reach)
    delta = proposed(forecast, config, power)
    assert set(tokens_delta(delta_tokens(delta)).edits) == set(delta.edits), (config, found)


def test_the_objective_is_that_of_the_model():
    forecast = known(cells({3: 0.9, 4: 0.5, 6: 0.1}, {3: 0.9, 4: 0.5, 6: 0.1}))
    learning = msgspec.structs.replace(
        forecast, model=msgspec.structs.replace(forecast.model, objective="learnability")
    )
    assert proposed(forecast).edits[6].data_ratio > 0 > proposed(learning).edits[6].data_ratio
