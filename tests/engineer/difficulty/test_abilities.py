"""Abilities by stratum: what is learned from answers, how sure it is, and what strata share."""

import math
import time

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.engineer import DesignSpace, Knob
from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty import (
    DifficultyModel,
    DifficultySettings,
    Forecast,
    HeldOutCell,
    Learners,
    Observation,
    fit_abilities,
    make_forecast,
    receive_signals,
)
from lakewright.engineer.difficulty.abilities import check_abilities, count_effects
from lakewright.engineer.settings import complete_settings

LEVEL = Knob(name="level", low=1, high=8, step=1, reach=2, whole=True)
TASKS = DesignSpace(("add", "sort", "spell"), (LEVEL, Knob(name="twist", trait=True)), ranked=False)
SIZES = DesignSpace((3, 5, 8), (LEVEL,))
ANSWERS = 8


def chance(ability: float, cell: Cell) -> float:
    """P(valid) of a policy, which falls by 1.5 logits a level, and by 1 if there is a twist."""
    twist = float(cell.values[1]) if len(cell.values) > 1 else 0.0
    return 1 / (1 + math.exp(-1.5 * (ability - cell.values[0]) + twist))


def see(
    cell: Cell, p: float, rng: np.random.Generator, groups: int = 12, age: int = 0, *, tried: bool = False
) -> Observation:
    """Groups of ANSWERS independent answers."""
    valid = rng.binomial(ANSWERS, p, groups)
    variance = float((valid * (ANSWERS - valid)).sum() / (ANSWERS * (ANSWERS - 1)))
    return Observation(cell, groups, float(valid.sum() / ANSWERS), variance, age, groups * ANSWERS, tried)


def fit(observations, tested=(), space=TASKS, **how) -> DifficultyModel:
    return make_forecast(space.uniform(), observations, [], DifficultySettings(**how), space, tested=tested).model


def test_abilities_of_tasks_without_an_order_are_found_each_by_itself():
    rng, abilities = np.random.default_rng(0), {"add": 1.0, "sort": 7.0, "spell": 4.0}
    cells = [Cell(task, (level, twist)) for task in abilities for level in (2, 5, 7) for twist in (False, True)]
    model = fit([see(cell, chance(abilities[cell.stratum], cell), rng, tried=True) for cell in cells])
    others = [Cell(task, (level, False)) for task in abilities for level in (1, 4, 8)]
    wanted = [chance(abilities[cell.stratum], cell) for cell in others]
    assert model.predict(others, TASKS).mean == pytest.approx(wanted, abs=0.12)


def test_answers_without_chance_say_how_able_a_policy_is_and_not_how_its_groups_will_end():
    """Held-out problems are answered greedily, by which 1.2 logits more of them are valid than of sampled answers."""
    rng = np.random.default_rng(0)
    cells = [Cell(task, (level, False)) for task in TASKS.strata for level in (3, 4, 5)]
    sampled = [1 / (1 + math.exp(1.5 * (cell.values[0] - 4))) for cell in cells]
    greedy = [1 / (1 + math.exp(1.5 * (cell.values[0] - 4) - 1.2)) for cell in cells]
    groups = [see(cell, p, rng, age=age) for age in range(4) for cell, p in zip(cells, sampled, strict=True)]
    tested = [
        Observation(cell, 200, int(rng.binomial(200, p)), None, age, 200)
        for age in range(5)
        for cell, p in zip(cells, greedy, strict=True)
    ]
    model = fit(groups, tested)
    assert model.predict(cells, TASKS).mean == pytest.approx(sampled, abs=0.1)
    assert model.predict(cells, TASKS, sampled=False).mean == pytest.approx(greedy, abs=0.05)


def test_abilities_that_were_recorded_before_chance_was_an_effect_are_read():
    rng = np.random.default_rng(0)
    cells = [Cell(task, (level, False)) for task in TASKS.strata for level in (3, 5)]
    model = fit([see(cell, 0.5, rng) for cell in cells])
    assert model.abilities
    place = count_effects(model.abilities, TASKS) - 1
    mean = np.delete(np.array(model.abilities.mean), place, axis=1).tolist()
    covariance = np.delete(np.delete(np.array(model.abilities.covariance), place, axis=1), place, axis=2).tolist()
    old = msgspec.structs.replace(
        model, abilities=msgspec.structs.replace(model.abilities, mean=mean, covariance=covariance)
    )
    assert old.predict(cells, TASKS).mean == pytest.approx(old.predict(cells, TASKS, sampled=False).mean)
    known = Forecast(old, [], [HeldOutCell(cell, 1 / len(cells)) for cell in cells], 0.5, 0.5)
    learners = Learners(known, TASKS.uniform(), TASKS, rng, 4)
    assert np.isfinite(learners.estimate_gains(cells)).all()
    check_abilities(old.abilities, TASKS)


def test_an_interval_of_nine_tenths_holds_the_truth_about_nine_times_of_ten():
    """Twenty policies drawn at random, of which three rounds of answers are seen; the predictions are of all cells."""
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        abilities = dict(zip(TASKS.strata, rng.normal(4, 2, 3), strict=True))
        drawn = [Cell(task, (int(rng.integers(1, 9)), bool(rng.integers(2)))) for task in abilities for _ in range(3)]
        seen = [see(cell, chance(abilities[cell.stratum], cell), rng, age=n % 3) for n, cell in enumerate(drawn)]
        model = fit(seen)
        cells = [Cell(task, (level, twist)) for task in abilities for level in range(1, 9) for twist in (False, True)]
        sample = model.sample(cells, TASKS, rng, 400).success
        low, high = np.quantile(sample, (0.05, 0.95), axis=0)
        truth = np.array([chance(abilities[cell.stratum], cell) for cell in cells])
        held.append(np.mean((low - 0.01 <= truth) & (truth <= high + 0.01)))
    assert np.mean(held) > 0.88


def test_a_task_that_was_never_drawn_is_predicted_by_what_the_others_share_and_less_surely():
    rng = np.random.default_rng(1)
    seen = [see(Cell(task, (level, False)), 0.9, rng) for task in ("add", "sort") for level in (2, 6)]
    known, unknown = (fit(seen).predict([Cell(task, (4, False))], TASKS) for task in ("add", "spell"))
    assert unknown.mean[0] > 0.55
    assert unknown.deviation[0] > 2 * known.deviation[0]


def test_where_strata_have_an_order_the_ones_between_are_predicted_by_their_neighbours():
    rng = np.random.default_rng(2)
    ends = [see(Cell(size, (4,)), p, rng, 40) for size, p in ((3, 0.9), (8, 0.1))]
    assert 0.2 < fit(ends, space=SIZES).predict([Cell(5, (4,))], SIZES).mean[0] < 0.8


def test_a_policy_that_learned_and_one_that_forgot_are_followed():
    rng, cell = np.random.default_rng(3), Cell("add", (4, False))
    for before, now in ((0.2, 0.8), (0.8, 0.2)):
        seen = [see(cell, before, rng, age=age) for age in (3, 2, 1)] + [see(cell, now, rng, 20)]
        assert abs(fit(seen).predict([cell], TASKS).mean[0] - now) < 0.15


def test_a_task_that_gains_by_its_signal_has_the_larger_learning_rate():
    rng, rounds = np.random.default_rng(4), 6
    seen, tested = [], []
    for age in reversed(range(rounds)):
        for task, gain in (("add", 0.5), ("sort", 0.0)):
            ability = 4 + gain * (rounds - 1 - age)
            cell = Cell(task, (4, False))
            seen.append(see(cell, chance(ability, cell), rng, 16, age))
            for level in (3, 4, 5, 6):
                held_out = Cell(task, (level, False))
                valid = int(rng.binomial(60, chance(ability + gain, held_out)))
                tested.append(Observation(held_out, 60, float(valid), None, age, 60))
    mean = np.array(fit(seen, tested).abilities.mean)
    rates = mean[:, -3]  # the first rate, before those by others and of the trait
    assert rates[0] > rates[1] + 0.05


def test_answers_weigh_what_they_are_worth():
    """Independent answers tell more than as many that are all alike within their problems."""
    cell = Cell("add", (4, False))
    spread = [Observation(cell, 10, 5.0, 2.5, 0, 80, tried=True)]
    alike = [Observation(cell, 10, 5.0, 0.0, 0, 80, tried=True)]
    loose, firm = (fit(seen).predict([cell], TASKS).deviation[0] for seen in (alike, spread))
    assert firm < 0.7 * loose
    even, uneven = (fit([msgspec.structs.replace(one, tried=False) for one in seen]) for seen in (spread, alike))
    assert even.evenness > 0.9 > 0.3 > uneven.evenness


def test_problems_that_are_known_or_not_give_less_signal_than_problems_that_are_half_solved():
    """Both tasks have half of their answers valid; of `sort` every problem is solved always or never."""
    half, known = Cell("add", (4, False)), Cell("sort", (4, False))
    model = fit([Observation(half, 40, 20.0, 10.0, 0, 320), Observation(known, 40, 20.0, 0.0, 0, 320)])
    even, rote, unseen = model.list_evenness([half, known, Cell("spell", (4, False))], TASKS)
    assert even > 0.8
    assert rote < 0.2
    assert unseen == model.evenness
    predicted = model.predict([half, known], TASKS).mean
    signals = model.expect_signal(predicted, model.list_evenness([half, known], TASKS), np.zeros(2))
    assert signals[0] > 4 * signals[1]


def test_a_model_that_was_recorded_with_one_evenness_has_it_for_all_tasks():
    cell = Cell("add", (4, False))
    model = fit([Observation(cell, 40, 20.0, 10.0, 0, 320)])
    assert model.abilities
    old = msgspec.structs.replace(model, abilities=msgspec.structs.replace(model.abilities, evenness=[]))
    assert old.list_evenness([cell, Cell("sort", (4, False))], TASKS).tolist() == [model.evenness] * 2
    check_abilities(old.abilities, TASKS)
    wrong = msgspec.structs.replace(model.abilities, evenness=[0.5])
    with pytest.raises(InputError, match="model is not of"):
        check_abilities(wrong, TASKS)


def test_after_training_on_a_task_the_model_is_unsure_by_how_much_it_learned():
    rng, cell = np.random.default_rng(6), Cell("add", (4, False))
    trained, tried = see(cell, 0.5, rng), see(cell, 0.5, rng, tried=True)
    after, at_once = (fit([one]).predict([cell], TASKS) for one in (trained, tried))
    assert after.deviation[0] > 2 * at_once.deviation[0]
    assert after.mean[0] > at_once.mean[0]


def test_a_trial_tells_of_the_policy_and_trains_nothing():
    rng, cell = np.random.default_rng(5), Cell("add", (4, False))
    seen = see(cell, 0.5, rng, age=1)
    tried = Observation(cell, 12, 6.0, 3.0, 1, 96, tried=True)
    trained = fit_abilities([seen, seen], [], TASKS, "learnability")
    beside = fit_abilities([seen, tried], [], TASKS, "learnability")
    assert beside.abilities.unit == pytest.approx(trained.abilities.unit / 2)


@pytest.mark.parametrize(("objective", "signals"), [("learnability", (0.0, 1.0, 0.0)), ("regret", (0.5, 0.75, 0.0))])
def test_the_signal_of_a_group(objective, signals):
    cell = Cell("add", (4, False))
    for valid, wanted in zip((0, 4, 8), signals, strict=True):
        variance = valid * (ANSWERS - valid) / (ANSWERS * (ANSWERS - 1))
        assert receive_signals(Observation(cell, 1, valid / 8, variance, 0, 8), objective) == pytest.approx(wanted)


ODD = {
    "no answers": [],
    "one group": [Observation(Cell("add", (4, False)), 1, 0.5, 0.25, 0, 8)],
    "all valid": [Observation(Cell(task, (4, False)), 50, 50.0, 0.0, 0, 400) for task in TASKS.strata],
    "all failed": [Observation(Cell(task, (4, True)), 50, 0.0, 0.0, 0, 400) for task in TASKS.strata],
    "a million answers": [Observation(Cell("add", (4, False)), 125_000, 62_500.0, 31_000.0, 0, 10**6)],
    "a file of version 0.2": [Observation(Cell("add", (4, False)), 20, 12.0, 4.0)],
    "old answers alone": [Observation(Cell("add", (4, False)), 20, 12.0, 4.0, 90, 160)],
}


@pytest.mark.parametrize("name", ODD)
def test_every_forecast_is_finite_and_open_where_little_is_known(name):
    cells = [Cell(task, (level, twist)) for task in TASKS.strata for level in (1, 8) for twist in (False, True)]
    predicted = fit(ODD[name]).predict(cells, TASKS)
    assert np.isfinite(predicted.mean).all()
    assert ((predicted.mean > 0) & (predicted.mean < 1)).all()
    assert (predicted.deviation > 1e-4).all()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_answers_make_a_forecast_that_is_not_finite(data):
    cells = st.builds(
        lambda task, level, twist: Cell(task, (level, twist)),
        st.sampled_from(TASKS.strata),
        st.integers(1, 8),
        st.booleans(),
    )
    seen = []
    for cell in data.draw(st.lists(cells, max_size=12)):
        groups, size = data.draw(st.integers(1, 300)), data.draw(st.integers(2, 16))
        valid = data.draw(st.integers(0, groups * size))
        variance = data.draw(st.floats(0, 0.25)) * groups
        seen.append(Observation(cell, groups, valid / size, variance, data.draw(st.integers(0, 20)), groups * size))
    predicted = fit(seen).predict([Cell("spell", (3, True)), *(one.cell for one in seen)], TASKS)
    assert np.isfinite([predicted.mean, predicted.deviation]).all()


def test_ten_thousand_cells_are_fitted_in_bounded_time():
    space = DesignSpace([f"task_{number}" for number in range(1000)], (LEVEL,), ranked=False)
    cells = [Cell(stratum, (level,)) for stratum in space.strata for level in (1, 3, 5, 7)]
    seen = [Observation(cell, 2, 1.0, 0.5, age, 16) for age in range(3) for cell in cells]
    begun = time.process_time()
    assert np.isfinite(fit(seen, space=space).predict(cells, space).mean).all()
    assert time.process_time() - begun < 20


def test_a_setting_that_the_model_does_not_have_is_refused():
    for name, value in (("decay", 0.5), ("by_size", 2.0), ("held_out", True)):
        with pytest.raises(InputError, match=rf"difficulty: {name} is {value}"):
            DifficultySettings(**{name: value})
        assert getattr(DifficultySettings(model="regression", **{name: value}), name) == value


def test_settings_that_version_02_recorded_keep_their_regression():
    recorded = {"settings": {"difficulty": {"decay": 0.6, "by_size": 2.0}, "guard": {"floor": 0.1}}}
    assert complete_settings(recorded)["settings"]["difficulty"]["model"] == "regression"
    new = {"difficulty": {"decay": 0.6, "model": "abilities"}}
    assert complete_settings(new) == new


def test_settings_recorded_before_trials_had_a_share_let_a_trial_take_any():
    recorded = {"settings": {"trial": {"enabled": True, "boards": 9, "samples": 2}}}
    assert complete_settings(recorded)["settings"]["trial"]["share"] == 0
    for known in ({"trial": {"boards": 9, "samples": 2, "share": 0.1}}, {"trial": {"boards": 9}}):  # a part of a study
        assert complete_settings(known) == known


def test_strata_may_weigh_the_same_however_many_problems_they_hold():
    from lakewright.engineer.difficulty import HeldOutCell

    parts = [HeldOutCell(Cell("add", (4, False)), 0.6), HeldOutCell(Cell("add", (5, False)), 0.2)]
    parts.append(HeldOutCell(Cell("sort", (4, False)), 0.2))
    known = make_forecast(TASKS.uniform(), [], parts, DifficultySettings(weigh="strata"), TASKS)
    assert [part.share for part in known.held_out] == pytest.approx([0.375, 0.125, 0.5])
