"""`Engineer.redesign` is its public steps, for each of which a journal is asked first."""

import pytest

from lakewright.engineer import Engineer
from lakewright.engineer.difficulty import observe_groups
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

        seen = [*observe_groups((group.cell, group) for group in groups), *grow_older(past)]
        forecast = steps.fit_forecast(seen, before=before)
        attempts = steps.propose(decision.evidence, forecast, fold_key(make_key(3), number))
        last = attempts[-1]
        work = TrialWork(steps.environment, roll_out, SETTINGS.trial, forecast.model.objective, 3 + number)
        trial = steps.try_proposal(last.verdict, last.proposal.candidates, forecast, work)
        assert (forecast, attempts, trial) == (decision.forecast, decision.attempts, decision.trial)
        assert steps.judge_delta(last.proposal.delta, forecast) == last.verdict
        assert decide_next(last.verdict, steps.design, trial).design.strata == whole.design.strata
        past, before = [*seen, *(trial.observe() if trial else ())], forecast
