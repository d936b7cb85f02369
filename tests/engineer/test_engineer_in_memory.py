"""What a loop of one's own or a teacher of one's own does by mistake cannot pass as something else."""

import numpy as np
import pytest

from lakewright.engineer import Engineer, EngineerSettings, Group, Verdict
from lakewright.engineer.guard import GuardSettings
from lakewright.engineer.proposal import propose_rows
from lakewright.engineer.trial import TrialSettings
from tests.engineer.test_environment import Sums
from tests.support.refusals import refused


class Teaches:
    """A teacher of these proposals."""

    def __init__(self, propose) -> None:
        self.propose = propose

    def state_dict(self) -> dict:
        return {}

    def load_state_dict(self, state: dict) -> None:
        pass


def learn(engineer: Engineer, count: int = 8) -> None:
    """Observes groups of which half is right."""
    problems = engineer.draw(count)
    engineer.observe(engineer.environment.groups(problems, [[problem.answer, "?"] for problem in problems]))


def edit_in_place(evidence, design, space, key):
    for one in (design, evidence.design):
        one.strata["sums"]["terms"] = 9
    return propose_rows(design, design.strata, "in place", space)


def test_a_teacher_that_edits_its_design_in_place_changes_nothing():
    engineer = Engineer(Sums(), Teaches(edit_in_place))
    before = engineer.design
    learn(engineer)
    decision = engineer.redesign()
    assert engineer.design == before == decision.before
    assert decision.evidence.design == before


@pytest.mark.parametrize(
    "find",
    [
        lambda engineer, start, decision: engineer.design,
        lambda engineer, start, decision: start,
        lambda engineer, start, decision: decision.design,
        lambda engineer, start, decision: decision.before,
    ],
)
def test_designs_that_a_loop_edits_in_place_are_not_the_engineers(find):
    start = Sums.space.uniform()
    engineer = Engineer(Sums(), "random", start)
    learn(engineer)
    decision = engineer.redesign()
    before = engineer.state_dict()
    for design in (start, engineer.design, decision.design, decision.before):
        design.strata["sums"]["terms"] = 99
    assert engineer.state_dict() == before
    engineer.design = mine = Sums.space.uniform()
    mine.strata["sums"]["terms"] = 99
    assert engineer.design.strata["sums"]["terms"] != 99


SUMS = Sums()
HELD_OUT = SUMS.draw(Sums.space.uniform(), 60, seed=1)


def answer(problems, wrong=()):
    """Right answers, except to some problems."""
    return SUMS.tallies(problems, ["?" if problem in wrong else problem.answer for problem in problems])


@pytest.mark.parametrize("held_out", [HELD_OUT, None])
def test_held_out_answers_are_compared_problem_by_problem_in_any_order(held_out):
    engineer = Engineer(SUMS, held_out=held_out)
    for problems in (HELD_OUT, HELD_OUT[::-1]):
        learn(engineer)
        decision = engineer.redesign(answer(problems, wrong=HELD_OUT[:15]))
    assert (decision.comparison.gained, decision.comparison.lost) == (0, 0)


@pytest.mark.parametrize(
    "problems", [SUMS.draw(Sums.space.uniform(), 60, seed=99), HELD_OUT[:7], HELD_OUT + HELD_OUT[:1]]
)
def test_answers_to_other_problems_than_the_held_out_ones_are_refused(problems):
    engineer = Engineer(SUMS, held_out=HELD_OUT)
    learn(engineer)
    before = engineer.state_dict()
    with refused(f"{len(problems)} answers", "60 problems in held_out"):
        engineer.redesign(answer(problems))
    assert engineer.state_dict() == before


def test_without_held_out_problems_answers_to_others_than_before_are_not_compared():
    engineer = Engineer(SUMS)
    for seed in (1, 99):
        problems = SUMS.draw(Sums.space.uniform(), 60, seed)
        learn(engineer)
        decision = engineer.redesign(answer(problems, wrong=problems if seed == 99 else ()))
    assert (decision.comparison, decision.rolled_back) == (None, False)


def test_a_restored_engineer_compares_no_answers_to_other_held_out_problems_than_its_own():
    engineer = Engineer(SUMS, "fixed", held_out=HELD_OUT)
    engineer.redesign(answer(HELD_OUT))
    state = engineer.state_dict()
    for held_out, known, fell in (
        (HELD_OUT, state, True),
        (SUMS.draw(Sums.space.uniform(), 60, seed=99), state, False),
        (HELD_OUT, {**state, "standing_problems": ""}, True),  # as earlier versions wrote it
    ):
        again = Engineer(SUMS, "fixed", held_out=held_out)
        again.load_state_dict(known)
        assert again.redesign(answer(held_out, wrong=held_out)).rolled_back is fell


@pytest.mark.parametrize("teacher", ["gain", "difficulty"])
def test_a_trainer_with_one_answer_for_each_problem_is_redesigned_for(teacher):
    engineer = Engineer(SUMS, teacher)
    problems = engineer.draw(64)
    engineer.observe(SUMS.groups(problems, [[one.answer if one.cell.stratum == "sums" else "?"] for one in problems]))
    decision = engineer.redesign()
    assert engineer.design.version == 1
    (sums,) = (one.p for one in decision.forecast.grid if one.cell == ("sums", (9, True), ()))
    (three,) = (one.p for one in decision.forecast.grid if one.cell == (3, (9, True), ()))
    assert sums > 0.5 > three


def test_settings_in_a_table_are_those_of_structs_and_are_converted():
    known = EngineerSettings(trial=TrialSettings(boards=50), guard=GuardSettings(reach={"terms": 2.0}))
    for table in (
        {"trial": {"boards": 50}, "guard": {"reach": {"terms": 2.0}}},
        {"trial.boards": 50, "guard.reach.terms": 2},
        {"trial": TrialSettings(boards=50), "guard.reach": {"terms": 2.0}},
        EngineerSettings(trial={"boards": 50}, guard={"reach": {"terms": 2}}),
    ):
        assert Engineer(SUMS, settings=table, roll_out=lambda problems, samples, turn: ([], 0)).settings == known


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"trial.boards": 50}, ["trial is for trials", "give roll_out"]),
        ({"proposals": 3}, ["proposals is for trials", "give roll_out"]),
        ({"evidence": {"preset": "v1"}}, ["evidence is for models", "teacher gain"]),
    ],
)
def test_a_table_with_a_setting_that_has_no_effect_is_refused(table, told):
    with refused("engineer: settings", *told):
        Engineer(SUMS, settings=table)
    Engineer(SUMS, Teaches(edit_in_place), settings={"evidence.preset": "v1", "trial": {}, "proposals": 1})


def test_answers_that_are_all_invalid_are_a_line_of_the_decision():
    engineer = Engineer(SUMS)
    for valid in (False, True):
        problems = engineer.draw(16)
        engineer.observe(SUMS.groups(problems, [[one.answer if valid else "?", "?"] for one in problems]))
        decision = engineer.redesign()
        for line in (decision.summary(), decision.explain(), *decision.next.reasons[:1]):
            assert ("no answer is valid in any stratum; check the judge" in line) is not valid


@pytest.mark.parametrize("teacher", ["gain", "difficulty", "thompson", "rules"])
def test_without_new_outcomes_the_design_stays_and_the_line_says_so(teacher):
    engineer = Engineer(SUMS, teacher)
    assert engineer.redesign().summary() == "unchanged: no outcomes since version 0 was decided"
    learn(engineer, 64)
    engineer.redesign()
    before = engineer.state_dict()
    version = engineer.design.version
    for _ in range(2):
        decision = engineer.redesign()
        assert decision.explain() == f"no outcomes since version {version} was decided"
        assert (decision.design, decision.rolled_back) == (engineer.design, False)
    assert engineer.state_dict() == before


@pytest.mark.parametrize("teacher", ["random", "fixed", Teaches(edit_in_place)])
def test_a_teacher_that_does_not_read_outcomes_goes_on_without_any(teacher):
    engineer = Engineer(SUMS, teacher)
    engineer.redesign()
    assert engineer.redesign().evidence.round == 1


def test_a_state_that_is_text_is_refused_with_how_to_read_it():
    with refused("state: is the text", "json.loads"):
        Engineer(SUMS).load_state_dict("{}")


def test_groups_have_the_lengths_of_their_answers():
    problems = HELD_OUT[:2]
    groups = SUMS.groups(problems, [["1", "?"], ["1"]], tokens=[[3, 4], [5]])
    assert [group.tokens for group in groups] == [7, 5]


@pytest.mark.parametrize(
    ("tokens", "told"),
    [([[3, 4]], ["tokens: 1 lists", 2]), ([[3], [5]], ["tokens: [3]", 2]), ([[3, 4], [0.5]], ["0.5"]), ([7, 5], [7])],
)
def test_lengths_of_another_shape_are_refused(tokens, told):
    with refused(*told):
        SUMS.groups(HELD_OUT[:2], [["1", "?"], ["1"]], tokens=tokens)


@pytest.mark.parametrize(
    ("verdicts", "tokens", "told"),
    [
        ([Verdict(True, 1.0)], [17], ["tokens", "[17]", "sum"]),
        ([Verdict(True, np.float32(1))], 17, ["reward", "float32", "float(...)"]),
        ([Verdict(True, float("nan"))], 17, ["reward", "nan"]),
        ([], 17, ["reward", "missing"]),
        ([1.0], 17, ["verdicts", "1.0", "Verdict"]),
    ],
)
def test_a_group_of_other_numbers_is_refused(verdicts, tokens, told):
    with refused("group", *told):
        Group.from_verdicts(HELD_OUT[0], verdicts, tokens=tokens)


def test_a_number_of_numpy_in_a_verdict_is_refused_wherever_it_comes_in():
    class Odd(Sums):
        def judge(self, problem, answer):
            return Verdict(True, np.float32(1))

    with refused("judge", "float32", "float(...)"):
        Odd().groups(HELD_OUT[:1], [["1"]])


def test_a_design_that_is_set_gets_the_next_version_so_answers_that_come_later_count():
    engineer = Engineer(SUMS, "random")
    learn(engineer)
    engineer.redesign()
    assert engineer.design.version == 1
    problems = engineer.draw(4)
    engineer.design = engineer.design
    assert engineer.design.version == 1
    engineer.design = Sums.space.uniform()
    assert engineer.design.version == 2
    engineer.observe(SUMS.groups(problems, [[one.answer] for one in problems]))
    assert {one.version for one in engineer.draw(2)} == {2}
