"""What an engineer knows: held-out answers before and after training, groups of trials, and what was really done."""

import json

import pytest

from lakewright.engineer import Engineer
from lakewright.engineer.design import Delta, Edit
from lakewright.engineer.difficulty import DifficultySettings
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.proposal import Proposal, Stateful, propose_rows
from lakewright.engineer.rollback import RollbackSettings
from lakewright.engineer.settings import EngineerSettings
from lakewright.engineer.trial import TrialSettings
from tests.engineer.test_environment import Sums
from tests.support.refusals import refused

ENVIRONMENT = Sums()
HELD_OUT = ENVIRONMENT.draw(ENVIRONMENT.space.uniform(), 40, seed=9)
REGRESSION = EngineerSettings(difficulty=DifficultySettings(model="regression", held_out=True))
TRIED = EngineerSettings(trial=TrialSettings(share=0, boards=8, samples=2), proposals=2)


def outcomes(solved: str | int) -> Outcomes:
    """Greedy answers to the held-out problems of which those of one stratum are right; `all` or `none`."""
    strata = {"all": (3, "sums"), "none": ()}.get(solved, (solved,))
    texts = [problem.answer if problem.cell.stratum in strata else "?" for problem in HELD_OUT]
    return ENVIRONMENT.tallies(HELD_OUT, texts)


def roll_out(problems, samples, turn):
    """Every second answer to a problem of the stratum 3 is right, and none of the other."""
    texts = [[problem.answer if problem.cell.stratum == 3 else "?", "?"] for problem in problems]
    return ENVIRONMENT.groups(problems, texts), 3


def engineer(teacher="difficulty", **changes) -> Engineer:
    return Engineer(ENVIRONMENT, teacher, held_out=HELD_OUT, **changes)


class Shares(Stateful):
    """A user's teacher, which proposes less of one stratum or, as its candidate, more of them."""

    def propose(self, evidence, design, space, key):
        less, more = (Delta({3: Edit({"share": change, "terms": 0.0, "noise": 0.0}, "why")}) for change in (-0.1, 0.1))
        return Proposal("", "", less, candidates=(more,))


def test_the_first_stage_is_redesigned_from_the_held_out_answers():
    mine = engineer()
    before = mine.design
    decision = mine.redesign(outcomes(3))
    assert decision.forecast.model.groups == len(HELD_OUT)
    assert (decision.evidence.round, decision.evidence.problems, decision.evidence.groups) == (0, None, [])
    assert mine.design != before
    easy, hard = ([part.p for part in decision.forecast.grid if part.cell.stratum == one] for one in (3, "sums"))
    assert min(easy) > max(hard)


def test_held_out_answers_of_all_rounds_are_fitted_and_by_a_regression_count_less_with_every_round():
    mine = engineer("fixed", settings=REGRESSION)
    for number in range(3):
        decision = mine.redesign(outcomes(3))
        decay = mine.settings.difficulty.decay
        assert decision.forecast.model.groups == pytest.approx(
            len(HELD_OUT) * sum(decay**age for age in range(number + 1))
        )
    state = json.loads(json.dumps(mine.state_dict()))
    assert [sum(one["groups"] for one in state["tested"] if one["age"] == age) for age in range(4)] == [40, 40, 40, 0]
    other = engineer("fixed", settings=REGRESSION)
    other.load_state_dict(state)
    assert other.redesign(outcomes("all")) == mine.redesign(outcomes("all"))


def test_answers_of_the_policy_before_its_first_stage_may_be_noted_alone():
    mine = engineer("fixed")
    mine.observe_start(outcomes("all"))
    decision = mine.redesign(outcomes("none"))
    assert decision.forecast.model.groups == 80
    assert decision.comparison.lost == 40
    assert decision.rolled_back
    assert decision.next.source == "current", "there is no other design to go back to"
    with refused("observe_start: 1 rounds"):
        mine.observe_start(outcomes("all"))


def test_groups_of_a_trial_are_fitted_in_the_next_round():
    mine = engineer("random", settings=TRIED, roll_out=roll_out)
    trial = mine.redesign(outcomes(3)).trial
    tried = sum(len(part.valid) for part in trial.cells)
    assert tried
    assert mine.redesign().forecast.model.groups == tried + len(HELD_OUT)


def test_the_history_tells_the_change_that_the_trial_preferred():
    mine = engineer(Shares(), settings=TRIED, roll_out=roll_out)
    decision = mine.redesign()
    assert decision.attempts[-1].proposal.delta.edits[3].changes["share"] < 0
    assert decision.trial.chosen == 2
    assert mine.history[-1].delta.edits[3].changes["share"] > 0
    assert "preferred" in mine.history[-1].delta.edits[3].reason


def test_a_policy_that_fell_is_compared_with_the_one_whose_weights_training_goes_on_with():
    for weights, back in ((True, [True, True]), (False, [True, False])):
        how = EngineerSettings(rollback=RollbackSettings(weights=weights))
        mine = engineer("fixed", settings=how)
        mine.redesign(outcomes("all"))
        assert [mine.redesign(outcomes(3)).rolled_back for _ in range(2)] == back
        assert [one.rolled_back for one in mine.history] == [False, *back]


def test_a_trainer_that_keeps_its_weights_is_rolled_back_once_for_one_fall():
    mine = engineer("fixed")
    mine.redesign(outcomes("all"))
    assert [mine.redesign(outcomes(3)).rolled_back for _ in range(3)] == [True, False, False]


def test_what_a_policy_answered_whose_weights_are_discarded_says_nothing_of_the_one_that_training_goes_on_with():
    found = {}
    for weights in (True, False):
        mine = engineer("fixed", settings=EngineerSettings(rollback=RollbackSettings(weights=weights)))
        mine.redesign(outcomes(3))
        mine.redesign(outcomes(3))
        problems = mine.draw(16)
        mine.observe(ENVIRONMENT.groups(problems, [[problem.answer, "?"] for problem in problems]))
        mine.redesign(outcomes("none"))
        found[weights] = mine.forecast.model
        assert found[weights].groups == (96 if weights else 136)
    # The groups of the round were answered before its training, so they still count.
    cells = [ENVIRONMENT.space.cell(3, terms=2, noise=False)]
    kept, discarded = (found[weights].predict(cells, ENVIRONMENT.space).mean[0] for weights in (False, True))
    assert kept < 0.3 < discarded


def test_a_state_of_an_earlier_version_without_held_out_answers_is_read():
    mine = engineer()
    mine.redesign(outcomes(3))
    state = mine.state_dict()
    del state["tested"]
    mine.load_state_dict(state)
    assert mine.redesign(outcomes(3)).forecast.model.groups == len(HELD_OUT)


def test_a_summary_says_in_a_sentence_which_strata_gain_which_lose_and_why():
    mine = engineer(Shares(), settings=EngineerSettings(trial=TrialSettings(enabled=False)))
    decision = mine.redesign()
    assert decision.summary() == "more of sums (+6 points), less of 3 (-6 points): why"
    line, *strata = decision.explain().splitlines()
    assert line.startswith("3 share -0.1 (why)")
    assert len(strata) == 2
    assert strata[0] == "sums: expected 0.46, then 0.46; share 0.5 to 0.556"
    assert engineer("fixed").redesign().summary() == "unchanged: no change was proposed"


def test_an_explanation_has_the_answers_the_expectation_and_the_values_of_each_stratum():
    mine = engineer(Shares())
    problems = mine.draw(20)
    mine.observe(ENVIRONMENT.groups(problems, [[one.answer, one.answer, "?"] for one in problems]))
    before = mine.design.strata
    decision = mine.redesign(outcomes(3))
    for stratum, told in zip((3, "sums"), sorted(decision.explain().splitlines()[1:]), strict=True):
        count = sum(problem.cell.stratum == stratum for problem in problems)
        asked = sum(problem.cell.stratum == stratum for problem in HELD_OUT)
        valid = asked if stratum == 3 else 0
        answers = f"{2 * count} of {3 * count} training answers valid; {valid} of {asked} held-out answers valid"
        assert told.startswith(f"{stratum}: {answers}; expected 0.")
        shares = [design[stratum]["share"] for design in (before, decision.design.strata)]
        assert told.endswith(f"; share {shares[0]:.3g} to {shares[1]:.3g}")


def test_a_trial_without_any_signal_says_that_the_forecast_decided():
    def fail(problems, samples, turn):
        return ENVIRONMENT.groups(problems, [["?"] * samples] * len(problems)), 3

    trial = engineer(Shares(), settings=TRIED, roll_out=fail).redesign(outcomes(3)).trial
    assert [tried.score for tried in trial.candidates] == [0.0, 0.0, 0.0]
    assert trial.summary().endswith("by the forecast alone (no signal in either)")


def test_a_summary_names_each_level_and_trait_that_changes():
    rows = {stratum: dict(row) for stratum, row in ENVIRONMENT.space.uniform().strata.items()}
    changed = {name: {**row, "terms": row["terms"] + 1} for name, row in rows.items()}

    class Harder(Shares):
        def propose(self, evidence, design, space, key):
            return propose_rows(design, changed, "why", space)

    summary = engineer(Harder()).redesign().summary()
    assert summary == "terms 6 to 7 in sums, terms 6 to 7 in 3: why"


def test_objects_print_as_a_line_that_says_what_they_are():
    mine = engineer("fixed")
    assert repr(mine) == "Engineer(version 0, teacher FixedTeacher, environment Sums)"
    assert repr(mine.redesign()) == "Decision(version 0: unchanged: no change was proposed)"
    assert repr(mine.environment) == "Sums(DesignSpace(strata sums, 3; knobs terms, noise))"


def test_a_summary_after_a_fall_says_that_validation_fell():
    mine = engineer(Shares(), settings=EngineerSettings(trial=TrialSettings(enabled=False)))
    mine.redesign(outcomes("all"))
    fell = mine.redesign(outcomes("none"))
    assert (
        fell.summary()
        == "more of 3 (+6 points), less of sums (-6 points): validation fell: 40 lost, 0 gained, p 9.1e-13"
    )
