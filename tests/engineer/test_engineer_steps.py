"""`Engineer.redesign` is its public steps, for each of which a journal is asked first."""

import pytest

from lakewright.engineer import Engineer
from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty import DifficultySettings, Observation, make_forecast, observe_groups
from lakewright.engineer.random_generators import fold_key, make_key
from lakewright.engineer.settings import EngineerSettings
from lakewright.engineer.steps import decide_next, grow_older
from lakewright.engineer.trial import TrialSettings, TrialWork
from tests.engineer.test_environment import Sums

SETTINGS = EngineerSettings(trial=TrialSettings(share=0, boards=8, samples=2), proposals=3)


def roll_out(problems, samples, turn):
    """Every answer to an odd problem is right."""
    answers = [[problem.answer if place % 2 else "?"] * samples for place, problem in enumerate(problems)]
    return Sums().groups(problems, answers), turn


@pytest.mark.parametrize("teacher", ["fixed", "difficulty", "thompson"])
def test_steps_of_an_engineer_made_anew_for_each_round_lead_to_the_same_decisions(teacher):
    whole = Engineer(Sums(), teacher, settings=SETTINGS, roll_out=roll_out, seed=3)
    past, before = [], None
    for number in range(3):
        problems = whole.draw(24)
        groups = whole.environment.groups(problems, [[problem.answer, "?"] for problem in problems])
        whole.observe(groups)
        steps = Engineer(Sums(), teacher, whole.design, settings=SETTINGS)
        steps.teacher.load_state_dict(whole.teacher.state_dict())
        decision = whole.redesign()

        seen = [*observe_groups((group.cell, group) for group in groups), *grow_older(past, SETTINGS.difficulty)]
        forecast = steps.fit_forecast(seen, before=before)
        attempts = steps.propose(decision.evidence, forecast, fold_key(make_key(3), number))
        last = attempts[-1]
        work = TrialWork(steps.environment, roll_out, SETTINGS.trial, forecast.model.objective, 3 + number)
        trial = steps.try_proposal(last.verdict, last.proposal.candidates, forecast, work)
        assert (forecast, attempts, trial) == (decision.forecast, decision.attempts, decision.trial)
        assert steps.judge_delta(last.proposal.delta, forecast) == last.verdict
        assert decide_next(last.verdict, steps.design, trial).design.strata == whole.design.strata
        past, before = [*seen, *(trial.observe() if trial else ())], forecast


def test_observations_that_are_read_no_more_are_pooled_and_the_forecast_is_the_same():
    space, usual, regression = Sums.space, DifficultySettings(), DifficultySettings(model="regression")
    design, cells = space.uniform(), [Cell("sums", (2, False)), Cell("sums", (4, True)), Cell(3, (2, True))]
    short, whole = [], []
    for age in range(40):
        fresh = [Observation(cell, 4, 1.5, 0.5, answers=16, tokens=80 + age) for cell in cells[: 2 + (age < 20)]]
        tried = [Observation(cells[0], 2, 1.0, 0.4, answers=8, tried=True)]
        short = [*fresh, *tried, *grow_older(short, usual)]
        whole = [*fresh, *tried, *grow_older(whole, regression)]
    assert (len(whole), len(short)) == (140, 16 * 3 + 4)
    for name in ("groups", "answers", "success"):
        assert sum(getattr(one, name) for one in short) == pytest.approx(sum(getattr(one, name) for one in whole))
    forecasts = [make_forecast(design, seen, [], usual, space) for seen in (short, whole)]
    assert forecasts[0].model == forecasts[1].model
    assert forecasts[0].grid == forecasts[1].grid
    assert forecasts[0].tokens == pytest.approx(forecasts[1].tokens, rel=0.1), "old answers count alike"
