"""Prospects: what a training on many problems of a kind gains, beside the gain of the next one."""

import numpy as np
import pytest

from lakewright.engineer import DesignSpace, Knob
from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty import DifficultySettings, HeldOutCell, Learners, Observation, make_forecast
from lakewright.engineer.difficulty.abilities import OTHERS

LEVEL = Knob(name="level", low=1, high=4, step=1, reach=1, whole=True)
SPACE = DesignSpace(("add", "sort"), (LEVEL, Knob(name="twist", trait=True)), ranked=False)
CELLS = [Cell(task, (level, twist)) for task in SPACE.strata for level in range(1, 5) for twist in (False, True)]
NEARLY_SOLVED, HARDLY_TRIED = 0.93, 0.06


def make_learners(easy=NEARLY_SOLVED, twisted=HARDLY_TRIED, objective="auto"):
    """Learners of a forecast: of both tasks, most problems without a twist are solved, and few with one."""
    seen = [Observation(cell, 100, 100 * (twisted if cell.values[1] else easy), None, 0, 100) for cell in CELLS]
    held_out = [HeldOutCell(cell, 1 / len(CELLS)) for cell in CELLS]
    settings = DifficultySettings(objective=objective)
    known = make_forecast(SPACE.uniform(), [], held_out, settings, SPACE, tested=seen)
    return Learners(known, SPACE.uniform(), SPACE, np.random.default_rng(3), 6)


def measure(learners):
    """P(valid) over the held-out cells, float [M]."""
    return learners.predict_held_out().mean(axis=1)


@pytest.mark.parametrize("objective", ["learnability", "regret"])
def test_within_a_moment_a_prospect_is_the_gain_of_the_next_problem(objective):
    learners = make_learners(objective=objective)
    found = learners.estimate_prospects(learners.group_cells(CELLS), 1e-6)
    # With regret the levels of a kind differ by 1 - p beside p (1 - p), as `estimate_gains` has it.
    np.testing.assert_allclose(found, learners.estimate_gains(CELLS), rtol=1e-4)


@pytest.mark.parametrize("horizon", [1.0, 6.0, 30.0])
@pytest.mark.parametrize("twist", [False, True])
def test_a_prospect_is_the_best_mean_gain_of_a_training_in_small_steps(horizon, twist):
    kind = [Cell("sort", (level, twist)) for level in range(1, 5)]
    learners = make_learners()
    learners.rates[..., OTHERS] = 0  # tasks help each other along a straight line in a prospect, along a curve here
    found = learners.estimate_prospects(learners.group_cells(kind), horizon).max(axis=1)
    before, best, steps = measure(learners), np.zeros(6), 400
    for step in range(1, steps + 1):
        levels = learners.expect_signals(kind).argmax(axis=1)
        learners.train([kind[place] for place in levels], horizon / steps)
        best = np.maximum(best, (measure(learners) - before) / (step * horizon / steps))
    np.testing.assert_allclose(found, best, rtol=0.15)


def test_what_is_learned_slowly_at_first_is_worth_more_than_its_next_problem():
    learners = make_learners()
    plain, twisted = Cell("add", (2, False)), Cell("add", (2, True))
    kinds = learners.group_cells([plain, twisted])
    soon, later = (learners.estimate_prospects(kinds, problems).mean(axis=0) for problems in (0.1, 12.0))
    assert later[1] / later[0] > 1.5 * soon[1] / soon[0]


def test_what_is_out_of_reach_within_the_horizon_stays_out_of_it():
    learners = make_learners(twisted=0.0)
    plain, twisted = Cell("add", (2, False)), Cell("add", (2, True))
    found = learners.estimate_prospects(learners.group_cells([plain, twisted]), 12.0).mean(axis=0)
    assert found[1] < found[0]


def test_cells_of_a_kind_differ_by_their_signal_alone():
    learners = make_learners()
    kind = [Cell("add", (level, True)) for level in range(1, 5)]
    found = learners.estimate_prospects(learners.group_cells(CELLS), 12.0)[:, [CELLS.index(cell) for cell in kind]]
    signals = learners.expect_signals(kind)
    np.testing.assert_allclose(found / found.max(axis=1, keepdims=True), signals / signals.max(axis=1, keepdims=True))
