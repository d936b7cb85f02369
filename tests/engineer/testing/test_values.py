"""What the check of environments says of unusual values: of limits, verdicts, problems and answers."""

import math

import numpy as np
import pytest

from lakewright.engineer import DesignSpace, Knob, Problem, Verdict
from tests.engineer.testing.test_checks import EQUAL, TEXTS, Numbers, look_for


@pytest.mark.parametrize(
    "space",
    [
        DesignSpace((1, 2), (Knob(name="odd", trait=True, low=0.2, high=0.8),)),
        DesignSpace((1, 2), (Knob(name="odd", trait=True),), limits={2: {"odd": (0.0, 0.5)}}),
        DesignSpace((1, 2), (Knob(name="odd", trait=True),), limits={2: {"odd": (0.5, 0.5)}}),
    ],
)
def test_a_trait_whose_share_has_narrow_limits_is_no_fault(space):
    def make(self, cell, rng):
        number = 2 * rng.randrange(10**9) + cell["odd"]
        return Problem(f"{cell.stratum} {number}", str(number))

    def judge(self, problem, answer):
        return Verdict(True, 1.0) if answer == problem.answer else Verdict(False, 0.0, "wrong")

    assert not look_for(make=make, judge=judge, space=space)


@pytest.mark.parametrize(
    "verdict",
    [
        lambda right: Verdict(right, np.float64(right), "" if right else "wrong"),
        lambda right: Verdict(right, 10**90 * right, "" if right else "wrong"),
        lambda right: Verdict(right, float(right), "" if right else "wrong", ["short"] if right else []),
        lambda right: Graded(right, float(right), "" if right else "wrong"),
    ],
    ids=["a number of NumPy", "a large int", "a list of grades", "a class of its own"],
)
def test_a_verdict_that_json_changes_is_made_plain_and_is_no_fault(verdict):
    assert not look_for(judge=lambda self, problem, answer: verdict(answer == problem.answer))


class Graded(Verdict, frozen=True):
    """A verdict with a field of its own."""

    note: str = ""


class Noted(Problem, frozen=True):
    """A problem with a field of its own."""

    note: str = ""


def test_a_problem_of_a_class_of_its_own_is_named():
    fault = look_for(make=lambda self, cell, rng: Noted(f"{rng.random()}", "1", note="?"))[0]
    assert "return a Problem, not a subclass" in fault.problem


def test_a_judge_that_changes_a_problem_is_not_taken_for_a_fault_of_drawing():
    def judge(self, problem, answer):
        problem.data["number"].append(1)
        return Numbers.judge(self, problem, answer)

    faults = look_for(judge=judge)
    assert any(fault.problem.startswith("judge modified the problem;") for fault in faults)
    assert EQUAL not in {fault.name for fault in faults}


@pytest.mark.parametrize(
    "reads",
    [
        pytest.param(lambda answer: answer.isdigit() and int(answer), marks=pytest.mark.deep),
        lambda answer: answer.isascii() and answer.isdigit() and int(answer),
        pytest.param(lambda answer: answer[:1] == "-" and answer[1], marks=pytest.mark.deep),
    ],
)
def test_judges_that_read_numbers_carelessly_are_found(reads):
    def judge(self, problem, answer):
        reads(answer)
        return Numbers.judge(self, problem, answer)

    assert TEXTS in {fault.name for fault in look_for(judge=judge, seconds=math.inf)}
