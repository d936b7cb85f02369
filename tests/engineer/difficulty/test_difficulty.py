"""The difficulty model: fits what was rolled out, predicts what was not, and knows how sure it is."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import Group
from lakewright.engineer.curriculum_cells import Cell, config_of
from lakewright.engineer.difficulty import (
    DifficultySettings,
    Forecast,
    HeldOutCell,
    Observation,
    calibration_of,
    diminishing_worth_of,
    features,
    fit,
    forecast,
    held_out_observations,
    observations_of,
    pooled_calibration,
    worth_of,
)
from lakewright.engineer.difficulty.item_response import logistic_normal_moments
from tests.support.boards.generated_rows import small_rows

SETTINGS = DifficultySettings()
CONFIG = EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 6: SizeConfig(0.25, 0.2, 0.5), 9: SizeConfig(0.25, 0.2, 0.5)})
CELLS = [Cell(size, hole, forced) for size in range(3, 11) for hole in (0.1, 0.3) for forced in (False, True)]


def truth(cell: Cell) -> float:
    """Large boards with holes and waits are hard."""
    return float(1 / (1 + np.exp(0.9 * (cell.size - 6) + 6 * (cell.hole_ratio - 0.2) + 0.8 * cell.forced)))


def seen(cell: Cell, groups: int = 40, age: int = 0, p: float | None = None, agents: int = 2) -> Observation:
    success = truth(cell) if p is None else p
    return Observation(cell, agents, groups, groups * success, groups * success * (1 - success) * 0.5, age)


def test_the_mode_is_that_of_the_regularised_likelihood():
    found = [seen(cell, 10, age % 3) for age, cell in enumerate(CELLS)]
    points = features([one.cell for one in found], [2] * len(found))
    groups = np.array([SETTINGS.decay**one.age * one.groups for one in found])
    y = np.array([truth(one.cell) for one in found])

    def loss(w: np.ndarray) -> float:
        logit = points @ w
        return float(groups @ (np.logaddexp(0, logit) - y * logit) + w @ w / 2)

    best = minimize(loss, np.zeros(points.shape[1]), tol=1e-10)
    model = fit(found, SETTINGS)
    assert model.weights == pytest.approx(best.x, abs=2e-3)
    step = 1e-3 * np.eye(len(best.x))
    hessian = [
        [sum(a * b * loss(best.x + a * one + b * two) for a in (1, -1) for b in (1, -1)) / 4e-6 for two in step]
        for one in step
    ]
    assert np.array(model.covariance) == pytest.approx(np.linalg.inv(hessian), rel=0.02, abs=0.02)
    assert model.evenness == pytest.approx(0.5, abs=0.02)


def test_cells_that_were_never_drawn_are_predicted():
    drawn = [cell for cell in CELLS if cell.size not in (5, 8)]
    model = fit([seen(cell) for cell in drawn], SETTINGS)
    unseen = [Cell(size, hole, forced) for size in (5, 8) for hole in (0.1, 0.2, 0.3) for forced in (False, True)]
    expected = model.predict(unseen, [2] * len(unseen))
    assert np.abs(expected.mean - [truth(cell) for cell in unseen]).max() < 0.06


def test_what_was_rolled_out_more_is_known_better_and_what_is_older_less():
    few, many = (fit([seen(cell, groups) for cell in CELLS], SETTINGS) for groups in (2, 50))
    old = fit([seen(cell, 50, age=4) for cell in CELLS], SETTINGS)
    spreads = [model.predict(CELLS, [2] * len(CELLS)).deviation.mean() for model in (many, old, few)]
    assert spreads[0] < spreads[1]
    assert spreads[0] < spreads[2]
    assert many.groups == 50 * len(CELLS)


@pytest.mark.parametrize("logit", [-6.0, -2.0, 0.0, 1.0, 5.0])
@pytest.mark.parametrize("variance", [0.0, 0.01, 1.0, 9.0, 50.0, 400.0])
def test_mean_and_deviation_are_those_of_draws_from_the_posterior(logit, variance):
    draws = 1 / (1 + np.exp(-(logit + variance**0.5 * np.random.default_rng(0).standard_normal(1_000_000))))
    found = logistic_normal_moments(np.array([logit]), np.array([variance]))
    assert found.mean[0] == pytest.approx(draws.mean(), abs=2e-3)
    assert found.deviation[0] == pytest.approx(draws.std(), abs=2e-3)


def test_after_a_stage_without_a_valid_plan_little_is_known_of_what_was_not_drawn():
    """A policy that always failed on small boards says little of large ones: that is uncertainty, not certainty."""
    model = fit([seen(Cell(3, 0.2, forced), 8, p=0.0) for forced in (False, True)], SETTINGS)
    far = [Cell(9, 0.4, True)]
    drawn = model.sampled(far, [2], np.random.default_rng(0), 200_000).success[:, 0]
    found = model.predict(far, [2])
    assert (found.mean[0], found.deviation[0]) == pytest.approx((drawn.mean(), drawn.std()), abs=3e-3)
    assert found.deviation[0] > 0.1


def gap(cell: Cell) -> float:
    """Forced waits are unknown on even sizes."""
    return 0.1 if cell.forced and cell.size % 2 == 0 else 0.8


def test_a_size_may_have_effects_of_its_own_so_that_gaps_between_sizes_are_seen():
    found = [seen(cell, 20, p=gap(cell)) for cell in CELLS]
    smooth, by_size = (fit(found, DifficultySettings(by_size=size)) for size in (0.0, 2.0))
    errors = [
        np.abs(model.predict(CELLS, [2] * len(CELLS)).mean - [gap(cell) for cell in CELLS])
        for model in (smooth, by_size)
    ]
    assert errors[0].max() > 0.25
    assert errors[1].max() < 0.1
    unseen = [Cell(12, 0.2, True)], [2]
    assert by_size.predict(*unseen).deviation > smooth.predict(*unseen).deviation


def test_what_is_out_of_reach_is_worth_little():
    """Of two sizes on which as many plans fail, that is worth more on which other boards are solved."""
    cells = {Cell(3, 0.1, False): 0.9, Cell(3, 0.1, True): 0.1, Cell(9, 0.1, False): 0.1, Cell(9, 0.1, True): 0.1}
    found = [seen(cell, 500, p=p) for cell, p in cells.items()]
    near, far = (EnvConfig({size: SizeConfig(1.0, 0.1, 1.0)}) for size in (3, 9))
    plain, reach = (fit(found, DifficultySettings(objective="regret", reach=power)) for power in (0.0, 1.0))
    assert worth_of(plain, far, near).mean == pytest.approx(0.0, abs=0.03)
    assert worth_of(reach, near).mean == pytest.approx(0.9 * worth_of(plain, near).mean, rel=0.1)
    assert worth_of(reach, far).mean < 0.35 * worth_of(plain, far).mean


def test_far_from_all_rollouts_the_model_is_unsure():
    model = fit([seen(Cell(3, 0.1, forced)) for forced in (False, True)], SETTINGS)
    near, far = model.predict([Cell(3, 0.1, False), Cell(10, 0.5, True)], [2, 2]).deviation
    assert far > 3 * near


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_groups_that_all_fail_or_all_succeed_are_learned_from(p):
    model = fit([seen(cell, p=p) for cell in CELLS], SETTINGS)
    assert np.abs(model.predict(CELLS, [2] * len(CELLS)).mean - p).max() < 0.1
    assert np.isfinite(np.array(model.covariance)).all()


def test_without_rollouts_all_is_open():
    model = fit([], SETTINGS)
    assert model.groups == 0
    assert model.predict(CELLS, [2] * len(CELLS)).mean == pytest.approx(0.5)


def test_a_policy_that_learned_makes_the_older_groups_count_less():
    found = [seen(cell, p=0.1, age=1) for cell in CELLS] + [seen(cell, p=0.9) for cell in CELLS]
    kept, forgotten = (fit(found, DifficultySettings(decay)).predict(CELLS, [2] * len(CELLS)) for decay in (1.0, 0.0))
    assert kept.mean == pytest.approx(0.5, abs=0.01)
    assert forgotten.mean.min() > 0.8


def test_observations_are_the_groups_of_a_cell_and_single_plans_count_for_none():
    rows = small_rows()[:3]
    groups = [Group.of(str(i), [True, False, False, True], [0.0] * 4) for i in range(2)] + [
        Group.of("2", [True], [1.0])
    ]
    found = observations_of(zip(rows, groups, strict=True), age=2)
    assert sum(one.groups for one in found) == 2
    assert sum(one.success for one in found) == 1.0
    assert sum(one.variance for one in found) == pytest.approx(2 * (2 * 2) / (4 * 3))
    assert {one.age for one in found} == {2}


def test_calibration_compares_what_was_predicted_with_what_came():
    model = fit([seen(cell) for cell in CELLS], SETTINGS)
    good = calibration_of(model, 0.5, [seen(cell) for cell in CELLS])
    wrong = calibration_of(model, 0.5, [seen(cell, p=1 - truth(cell)) for cell in CELLS])
    assert good is not None
    assert wrong is not None
    assert good.brier < 0.002 < good.baseline < wrong.brier
    assert sum(part.groups for part in good.reliability) == good.groups == 40 * len(CELLS)
    assert all(abs(part.predicted - part.observed) < 0.05 for part in good.reliability)
    assert calibration_of(model, 0.5, []) is None


def test_calibrations_are_pooled_by_their_groups():
    model = fit([seen(cell) for cell in CELLS], SETTINGS)
    halves = [[seen(cell, 10 * (1 + place)) for cell in CELLS[place::2]] for place in (0, 1)]
    parts = [part for half in halves if (part := calibration_of(model, 0.5, half))]
    whole, pooled = calibration_of(model, 0.5, [*halves[0], *halves[1]]), pooled_calibration(parts)
    assert whole is not None
    assert pooled is not None
    assert (pooled.groups, pooled.brier, pooled.baseline) == pytest.approx((whole.groups, whole.brier, whole.baseline))
    for one, other in zip(pooled.reliability, whole.reliability, strict=True):
        assert (one.predicted, one.observed, one.groups) == pytest.approx(
            (other.predicted, other.observed, other.groups)
        )
    assert pooled_calibration([]) is None


def test_a_config_at_the_frontier_is_worth_more_and_the_difference_is_surer_than_either():
    model = fit([seen(cell) for cell in CELLS], SETTINGS)
    hard, frontier = EnvConfig.single(10, 2, 0.3, 1.0), EnvConfig.single(6, 2, 0.1, 0.5)
    assert worth_of(model, frontier).mean > 5 * worth_of(model, hard).mean
    same = worth_of(model, frontier, frontier)
    assert (same.mean, same.deviation) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert worth_of(model, frontier, hard).mean == pytest.approx(
        worth_of(model, frontier).mean - worth_of(model, hard).mean, abs=5e-3
    )


def test_by_regret_a_config_is_worth_the_share_of_plans_that_fail():
    model = fit([seen(cell) for cell in CELLS], DifficultySettings(objective="regret"))
    hard, frontier = EnvConfig.single(10, 2, 0.3, 1.0), EnvConfig.single(6, 2, 0.1, 0.5)
    assert worth_of(model, hard).mean > worth_of(model, frontier).mean
    assert worth_of(model, hard).mean == pytest.approx(1 - truth(Cell(10, 0.3, True)), abs=0.1)


@given(
    chances=st.lists(st.floats(0.05, 0.95), min_size=6, max_size=6),
    held_out=st.lists(st.floats(0.1, 1.0), min_size=6, max_size=6),
    other=st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6),
    power=st.floats(1.5, 6.0),
)
def test_with_diminishing_returns_most_is_earned_by_data_in_proportion_to_the_worth_of_cells(
    chances, held_out, other, power
):
    cells = [Cell(size, 0.2, forced) for size in CONFIG.sizes for forced in (False, True)]
    found = [seen(cell, 100, p=p) for cell, p in zip(cells, chances, strict=True)]
    tested = [HeldOutCell(cell, part / sum(held_out)) for cell, part in zip(cells, held_out, strict=True)]
    known = forecast(CONFIG, found, tested, DifficultySettings(objective="regret", by_size=2.0))
    each = [worth_of(known.model, EnvConfig({size: SizeConfig(1.0, 0.2, float(f))})).mean for size, _, f in cells]
    best = [part * value**power for part, value in zip(held_out, each, strict=True)]
    worth = [
        diminishing_worth_of(known, EnvConfig(config_of(CONFIG, dict(zip(cells, shares, strict=True)))), power)
        for shares in (best, other)
    ]
    assert worth[0] >= worth[1] - 1e-6


def test_the_larger_the_power_the_nearer_are_returns_to_linear():
    held_out = [HeldOutCell(cell, 1 / len(CELLS)) for cell in CELLS]
    known = forecast(CONFIG, [seen(cell) for cell in CELLS], held_out, SETTINGS)
    linear = worth_of(known.model, CONFIG).mean
    away = [abs(diminishing_worth_of(known, CONFIG, power) / linear - 1) for power in (2, 10, 1e6)]
    assert away[0] > away[1] > away[2]
    assert away[2] < 1e-4


def test_the_model_may_learn_from_held_out_boards_what_no_training_board_has_shown():
    rows = [row for row in small_rows() if row.agents > 1]
    tested = held_out_observations(rows, "0" * len(rows), age=1)
    assert sum(one.groups for one in tested) == len(rows)
    assert not any(one.success for one in tested)
    assert {one.age for one in tested} == {1}
    trained = [seen(Cell(3, 0.1, False), p=0.9)]
    without, with_them = (forecast(CONFIG, trained, [], SETTINGS, tested=some) for some in ([], 40 * tested))
    places, agents = [one.cell for one in tested], [one.agents for one in tested]
    assert (with_them.model.predict(places, agents).mean < 0.5 * without.model.predict(places, agents).mean).all()
    assert with_them.success == without.success, "only the model knows of them"
    assert [one.groups for one in with_them.grid] == [one.groups for one in without.grid]
    assert fit([*trained, *tested], DifficultySettings(decay=0.0)).evenness == fit(trained, SETTINGS).evenness


def test_a_forecast_survives_its_file_and_rates_the_one_before():
    held_out = [HeldOutCell(Cell(size, 0.2, False), 1 / 3) for size in CONFIG.sizes]
    first = forecast(CONFIG, [seen(cell) for cell in CELLS], held_out, SETTINGS)
    later = [seen(cell, age=1) for cell in CELLS] + [seen(Cell(6, 0.2, True))]
    second = forecast(CONFIG, later, held_out, SETTINGS, first)
    assert msgspec.json.decode(msgspec.json.encode(second), type=Forecast) == second
    assert first.calibration is None
    assert second.calibration is not None
    assert second.calibration.groups == 40
    assert second.calibration.brier < 0.01
    assert 0.5 < first.certainty <= 1
    assert forecast(CONFIG, [], held_out, SETTINGS).certainty == 0
    assert len(first.grid) == 3 * 6 * 2
    counted = [one.groups for one in later if one.cell.size in CONFIG.sizes]
    assert sum(found.groups for found in second.grid) == sum(counted)
