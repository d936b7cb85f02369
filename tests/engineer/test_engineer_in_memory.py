"""What a loop of one's own or a teacher of one's own does by mistake cannot pass as something else."""

import pytest

from lakewright.engineer import Engineer
from lakewright.engineer.proposal import propose_rows
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
