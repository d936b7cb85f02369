"""The difficulty model: fits what was rolled out, predicts what was not, and knows how sure it is."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import RolloutGroup
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import weigh_cells
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import (
    DifficultyModel,
    DifficultySettings,
    Forecast,
    HeldOutCell,
    Observation,
    Worth,
    compute_features,
    estimate_diminishing_worth,
    estimate_worth,
    fit_regression,
    logistic_normal_moments,
    make_forecast,
    measure_calibration,
    observe_groups,
    observe_held_out,
    pool_calibrations,
)
from lakewright.experiments.environments.lake import cell_of, design_of
from tests.support.boards.generated_rows import small_rows
from tests.support.samples.evidence import LAKE, SPACE, design

SETTINGS = DifficultySettings(model="regression")
DESIGN = design_of(
    EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 6: SizeConfig(0.25, 0.2, 0.5), 9: SizeConfig(0.25, 0.2, 0.5)})
)


def lake_cell(size: int, hole_ratio: float, forced: bool) -> Cell:
    """Boards of two agents."""
    return Cell(size, (hole_ratio, forced), (2,))


CELLS = [lake_cell(size, hole, forced) for size in range(3, 11) for hole in (0.1, 0.3) for forced in (False, True)]


def truth(cell: Cell) -> float:
    """Large boards with holes and waits are hard."""
    hole_ratio, forced = cell.values
    return float(1 / (1 + np.exp(0.9 * (int(cell.stratum) - 6) + 6 * (hole_ratio - 0.2) + 0.8 * forced)))


def seen(cell: Cell, groups: int = 40, age: int = 0, p: float | None = None) -> Observation:
    success = truth(cell) if p is None else p
    return Observation(cell, groups, groups * success, groups * success * (1 - success) * 0.5, age)


def worth(model: DifficultyModel, config: EnvConfig | Design, current: EnvConfig | None = None) -> Worth:
    """The worth of a config, or how much more it is worth than `current`."""
    beside = None if current is None else LAKE.cells(design(current))
    return estimate_worth(model, LAKE.cells(design(config)), SPACE, beside)


def test_the_mode_is_that_of_the_regularised_likelihood():
    found = [seen(cell, 10, age % 3) for age, cell in enumerate(CELLS)]
    points = compute_features([one.cell for one in found], SPACE)
    groups = np.array([SETTINGS.decay**one.age * one.groups for one in found])
    y = np.array([truth(one.cell) for one in found])

    def loss(w: np.ndarray) -> float:
        logit = points @ w
        return float(groups @ (np.logaddexp(0, logit) - y * logit) + w @ w / 2)

    best = minimize(loss, np.zeros(points.shape[1]), tol=1e-10)
    model = fit_regression(found, SETTINGS, SPACE)
    assert model.weights == pytest.approx(best.x, abs=2e-3)
    step = 1e-3 * np.eye(len(best.x))
    hessian = [
        [sum(a * b * loss(best.x + a * one + b * two) for a in (1, -1) for b in (1, -1)) / 4e-6 for two in step]
        for one in step
    ]
    assert np.array(model.covariance) == pytest.approx(np.linalg.inv(hessian), rel=0.02, abs=0.02)
    assert model.evenness == pytest.approx(0.5, abs=0.02)


def test_cells_that_were_never_drawn_are_predicted():
    drawn = [cell for cell in CELLS if cell.stratum not in (5, 8)]
    model = fit_regression([seen(cell) for cell in drawn], SETTINGS, SPACE)
    unseen = [lake_cell(size, hole, forced) for size in (5, 8) for hole in (0.1, 0.2, 0.3) for forced in (False, True)]
    expected = model.predict(unseen, SPACE)
    assert np.abs(expected.mean - [truth(cell) for cell in unseen]).max() < 0.06


def test_what_was_rolled_out_more_is_known_better_and_what_is_older_less():
    few, many = (fit_regression([seen(cell, groups) for cell in CELLS], SETTINGS, SPACE) for groups in (2, 50))
    old = fit_regression([seen(cell, 50, age=4) for cell in CELLS], SETTINGS, SPACE)
    spreads = [model.predict(CELLS, SPACE).deviation.mean() for model in (many, old, few)]
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
    model = fit_regression([seen(lake_cell(3, 0.2, forced), 8, p=0.0) for forced in (False, True)], SETTINGS, SPACE)
    far = [lake_cell(9, 0.4, True)]
    drawn = model.sample(far, SPACE, np.random.default_rng(0), 200_000).success[:, 0]
    found = model.predict(far, SPACE)
    assert (found.mean[0], found.deviation[0]) == pytest.approx((drawn.mean(), drawn.std()), abs=3e-3)
    assert found.deviation[0] > 0.1


def gap(cell: Cell) -> float:
    """Forced waits are unknown on even sizes."""
    return 0.1 if cell.values[1] and int(cell.stratum) % 2 == 0 else 0.8


def test_a_size_may_have_effects_of_its_own_so_that_gaps_between_sizes_are_seen():
    found = [seen(cell, 20, p=gap(cell)) for cell in CELLS]
    smooth, by_size = (
        fit_regression(found, DifficultySettings(model="regression", by_size=size), SPACE) for size in (0.0, 2.0)
    )
    errors = [np.abs(model.predict(CELLS, SPACE).mean - [gap(cell) for cell in CELLS]) for model in (smooth, by_size)]
    assert errors[0].max() > 0.25
    assert errors[1].max() < 0.1
    unseen = [lake_cell(12, 0.2, True)]
    assert by_size.predict(unseen, SPACE).deviation > smooth.predict(unseen, SPACE).deviation


def test_what_is_out_of_reach_is_worth_little():
    """Of two sizes on which as many plans fail, that is worth more on which other boards are solved."""
    kinds = {(3, False): 0.9, (3, True): 0.1, (9, False): 0.1, (9, True): 0.1}
    found = [seen(lake_cell(size, 0.1, forced), 500, p=p) for (size, forced), p in kinds.items()]
    near, far = (EnvConfig.single(size, 2, 0.1, 1.0) for size in (3, 9))
    plain, reach = (
        fit_regression(found, DifficultySettings(model="regression", objective="regret", reach=power), SPACE)
        for power in (0.0, 1.0)
    )
    assert worth(plain, far, near).mean == pytest.approx(0.0, abs=0.03)
    assert worth(reach, near).mean == pytest.approx(0.9 * worth(plain, near).mean, rel=0.1)
    assert worth(reach, far).mean < 0.35 * worth(plain, far).mean


def test_far_from_all_rollouts_the_model_is_unsure():
    model = fit_regression([seen(lake_cell(3, 0.1, forced)) for forced in (False, True)], SETTINGS, SPACE)
    near, far = model.predict([lake_cell(3, 0.1, False), lake_cell(10, 0.5, True)], SPACE).deviation
    assert far > 3 * near


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_groups_that_all_fail_or_all_succeed_are_learned_from(p):
    model = fit_regression([seen(cell, p=p) for cell in CELLS], SETTINGS, SPACE)
    assert np.abs(model.predict(CELLS, SPACE).mean - p).max() < 0.1
    assert np.isfinite(np.array(model.covariance)).all()


def test_without_rollouts_all_is_open():
    model = fit_regression([], SETTINGS, SPACE)
    assert model.groups == 0
    assert model.predict(CELLS, SPACE).mean == pytest.approx(0.5)


def test_a_policy_that_learned_makes_the_older_groups_count_less():
    found = [seen(cell, p=0.1, age=1) for cell in CELLS] + [seen(cell, p=0.9) for cell in CELLS]
    kept, forgotten = (
        fit_regression(found, DifficultySettings(model="regression", decay=decay), SPACE).predict(CELLS, SPACE)
        for decay in (1.0, 0.0)
    )
    assert kept.mean == pytest.approx(0.5, abs=0.01)
    assert forgotten.mean.min() > 0.8


def test_observations_are_the_groups_of_a_cell_and_single_plans_tell_no_variance():
    rows = small_rows()[:3]
    groups = [RolloutGroup.of(str(i), [True, False, False, True], [0.0] * 4) for i in range(2)] + [
        RolloutGroup.of("2", [True], [1.0])
    ]
    cell = cell_of(rows[0])
    groups, single = observe_groups([(cell, group) for group in groups], age=2)
    assert (groups.groups, groups.success, groups.answers) == (2, 1.0, 8)
    assert groups.variance == pytest.approx(2 * (2 * 2) / (4 * 3))
    assert (single.groups, single.success, single.answers, single.variance) == (1, 1.0, 1, None)
    assert (groups.age, single.age) == (2, 2)


def test_calibration_compares_what_was_predicted_with_what_came():
    model = fit_regression([seen(cell) for cell in CELLS], SETTINGS, SPACE)
    good = measure_calibration(model, 0.5, [seen(cell) for cell in CELLS], SPACE)
    wrong = measure_calibration(model, 0.5, [seen(cell, p=1 - truth(cell)) for cell in CELLS], SPACE)
    assert good is not None
    assert wrong is not None
    assert good.brier < 0.002 < good.baseline < wrong.brier
    assert sum(part.groups for part in good.reliability) == good.groups == 40 * len(CELLS)
    assert all(abs(part.predicted - part.observed) < 0.05 for part in good.reliability)
    assert measure_calibration(model, 0.5, [], SPACE) is None


def test_calibrations_are_pooled_by_their_groups():
    model = fit_regression([seen(cell) for cell in CELLS], SETTINGS, SPACE)
    halves = [[seen(cell, 10 * (1 + place)) for cell in CELLS[place::2]] for place in (0, 1)]
    parts = [part for half in halves if (part := measure_calibration(model, 0.5, half, SPACE))]
    whole, pooled = measure_calibration(model, 0.5, [*halves[0], *halves[1]], SPACE), pool_calibrations(parts)
    assert whole is not None
    assert pooled is not None
    assert (pooled.groups, pooled.brier, pooled.baseline) == pytest.approx((whole.groups, whole.brier, whole.baseline))
    for one, other in zip(pooled.reliability, whole.reliability, strict=True):
        assert (one.predicted, one.observed, one.groups) == pytest.approx(
            (other.predicted, other.observed, other.groups)
        )
    assert pool_calibrations([]) is None


def test_a_config_at_the_frontier_is_worth_more_and_the_difference_is_surer_than_either():
    model = fit_regression([seen(cell) for cell in CELLS], SETTINGS, SPACE)
    hard, frontier = EnvConfig.single(10, 2, 0.3, 1.0), EnvConfig.single(6, 2, 0.1, 0.5)
    assert worth(model, frontier).mean > 5 * worth(model, hard).mean
    same = worth(model, frontier, frontier)
    assert (same.mean, same.deviation) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert worth(model, frontier, hard).mean == pytest.approx(
        worth(model, frontier).mean - worth(model, hard).mean, abs=5e-3
    )


def test_by_regret_a_config_is_worth_the_share_of_plans_that_fail():
    model = fit_regression(
        [seen(cell) for cell in CELLS], DifficultySettings(model="regression", objective="regret"), SPACE
    )
    hard, frontier = EnvConfig.single(10, 2, 0.3, 1.0), EnvConfig.single(6, 2, 0.1, 0.5)
    assert worth(model, hard).mean > worth(model, frontier).mean
    assert worth(model, hard).mean == pytest.approx(1 - truth(lake_cell(10, 0.3, True)), abs=0.1)


@given(
    chances=st.lists(st.floats(0.05, 0.95), min_size=6, max_size=6),
    held_out=st.lists(st.floats(0.1, 1.0), min_size=6, max_size=6),
    other=st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6),
    power=st.floats(1.5, 6.0),
)
def test_with_diminishing_returns_most_is_earned_by_data_in_proportion_to_the_worth_of_cells(
    chances, held_out, other, power
):
    cells = [lake_cell(size, 0.2, forced) for size in DESIGN.strata for forced in (False, True)]
    found = [seen(cell, 100, p=p) for cell, p in zip(cells, chances, strict=True)]
    tested = [HeldOutCell(cell, part / sum(held_out)) for cell, part in zip(cells, held_out, strict=True)]
    known = make_forecast(
        DESIGN, found, tested, DifficultySettings(model="regression", objective="regret", by_size=2.0), SPACE
    )
    each = [worth(known.model, EnvConfig.single(cell.stratum, 2, 0.2, float(cell.values[1]))).mean for cell in cells]
    best = [part * value**power for part, value in zip(held_out, each, strict=True)]
    rows = (weigh_cells(dict(zip(cells, shares, strict=True)), DESIGN, SPACE) for shares in (best, other))
    earned = [estimate_diminishing_worth(known, LAKE.cells(DESIGN.replace(row)), power, SPACE) for row in rows]
    assert earned[0] >= earned[1] - 1e-6


def test_the_larger_the_power_the_nearer_are_returns_to_linear():
    held_out = [HeldOutCell(cell, 1 / len(CELLS)) for cell in CELLS]
    known = make_forecast(DESIGN, [seen(cell) for cell in CELLS], held_out, SETTINGS, SPACE)
    linear, mix = worth(known.model, DESIGN).mean, LAKE.cells(DESIGN)
    away = [abs(estimate_diminishing_worth(known, mix, power, SPACE) / linear - 1) for power in (2, 10, 1e6)]
    assert away[0] > away[1] > away[2]
    assert away[2] < 1e-4


def test_the_model_may_learn_from_held_out_boards_what_no_training_board_has_shown():
    rows = [row for row in small_rows() if row.agents > 1]
    tested = observe_held_out([(cell_of(row), False) for row in rows], age=1)
    assert sum(one.groups for one in tested) == len(rows)
    assert not any(one.success for one in tested)
    assert {one.age for one in tested} == {1}
    trained = [seen(lake_cell(3, 0.1, False), p=0.9)]
    with_tests = DifficultySettings(model="regression", held_out=True)
    without, with_them = (
        make_forecast(DESIGN, trained, [], with_tests, SPACE, tested=some) for some in ([], 40 * tested)
    )
    cells = [one.cell for one in tested]
    assert (with_them.model.predict(cells, SPACE).mean < 0.5 * without.model.predict(cells, SPACE).mean).all()
    assert with_them.success == without.success, "only the model knows of them"
    assert [one.groups for one in with_them.grid] == [one.groups for one in without.grid]
    both = fit_regression([*trained, *tested], DifficultySettings(model="regression", decay=0.0), SPACE)
    assert both.evenness == fit_regression(trained, SETTINGS, SPACE).evenness


def test_a_forecast_survives_its_file_and_rates_the_one_before():
    held_out = [HeldOutCell(lake_cell(size, 0.2, False), 1 / 3) for size in DESIGN.strata]
    first = make_forecast(DESIGN, [seen(cell) for cell in CELLS], held_out, SETTINGS, SPACE)
    later = [seen(cell, age=1) for cell in CELLS] + [seen(lake_cell(6, 0.2, True))]
    second = make_forecast(DESIGN, later, held_out, SETTINGS, SPACE, first)
    assert msgspec.json.decode(msgspec.json.encode(second), type=Forecast) == second
    assert first.calibration is None
    assert second.calibration is not None
    assert second.calibration.groups == 40
    assert second.calibration.brier < 0.01
    assert 0.5 < first.certainty <= 1
    assert make_forecast(DESIGN, [], held_out, SETTINGS, SPACE).certainty == 0
    assert len(first.grid) == 3 * 6 * 2
    counted = [one.groups for one in later if one.cell.stratum in DESIGN.strata]
    assert sum(found.groups for found in second.grid) == sum(counted)
