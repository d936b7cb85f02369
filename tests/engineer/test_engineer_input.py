"""Bad input of an engineer is one line, and leaves the engineer and its teacher as they were."""

import json
import math
from typing import NoReturn

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer import Cell, DesignSpace, Engineer, Group, Knob, Problem
from tests.engineer.test_environment import Sums

OTHER = DesignSpace(("long",), (Knob(name="words"),))
STRANGE = Problem("?", cell=OTHER.cell("long", words=0.5))


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"environment": Sums}, "is not an Environment with a space"),
        ({"design": OTHER.uniform()}, "strata.long is unknown; choose from sums, 3"),
        ({"design": {"sums": {}}}, "is not a Design; make one by space.design"),
        ({"held_out": [STRANGE]}, r"held_out: cell \('long', .* is none of this environment"),
        ({"held_out": []}, "held_out is empty"),
        ({"held_out": 3}, "held_out is 3; give a tuple of them"),
        ({"held_out": ["1 + 1"]}, "held_out: '1 \\+ 1' is no Problem"),
        ({"teacher": 3}, "teacher 3 has no propose"),
        ({"settings": {}}, "give EngineerSettings"),
        ({"seed": 2**70}, "give whole numbers"),
        ({"rounds": 0}, "rounds from 1"),
        ({"rounds": "3"}, "rounds '3'; give whole numbers"),
        ({"options": 3}, "teacher_options: 3 does not fit"),
    ],
)
def test_what_an_engineer_cannot_use_is_refused(parts, problem):
    with pytest.raises(InputError, match=problem) as caught:
        Engineer(**({"environment": Sums()} | parts))
    assert len(str(caught.value).splitlines()) == 1


def observed(engineer: Engineer) -> list[Group]:
    problems = engineer.draw(4)
    return engineer.environment.groups(problems, [[problem.answer, "x"] for problem in problems])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 1}, "version 1, reward 0.5; give groups of designs up to version 0"),
        ({"reward": math.nan}, "reward nan"),
        ({"cell": STRANGE.cell}, "is none of this environment"),
        ({"cell": Cell("sums", (math.nan, True))}, "is none of this environment"),
        ({"cell": Cell("sums", ("2", True))}, "is none of this environment"),
    ],
)
def test_a_group_of_another_design_is_refused_and_none_is_noted(change, problem):
    engineer = Engineer(Sums())
    good, *_ = groups = observed(engineer)
    before = engineer.state_dict()
    with pytest.raises(InputError, match=problem):
        engineer.observe([*groups, msgspec.structs.replace(good, **change)])
    assert engineer.state_dict() == before


@pytest.mark.parametrize("groups", [None, 3, "ab"])
def test_groups_that_are_no_list_are_refused(groups):
    with pytest.raises(InputError, match=r"observe: groups is .*; give a tuple of them"):
        Engineer(Sums()).observe(groups)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"statistics": 3}, "3 is not a dict of statistics"),
        ({"training": 3}, "training: 3 does not fit"),
        ({"cases": 3}, "cases is 3"),
    ],
)
def test_further_evidence_of_another_form_is_refused(parts, problem):
    with pytest.raises(InputError, match=problem):
        Engineer(Sums()).redesign(**parts)


@pytest.mark.parametrize("outcomes", [[1], {"sums": 1}])
def test_outcomes_that_are_no_tallies_are_refused(outcomes):
    with pytest.raises(InputError, match="is not a dict of tallies; give those of Environment"):
        Engineer(Sums()).redesign(outcomes)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"space": OTHER.signature()}, "load the state of this environment"),
        ({"format": 9}, "use the version that wrote it"),
        ({"teacher": {"counts": 3}}, "load the state of the same teacher"),
        ({"teacher": {}}, "load the state of the same teacher"),
        ({"drawn": -1}, "drawn: -1 does not fit"),
        ({"standing": {"strata": {"long": {}}}}, "strata.long is unknown"),
    ],
)
@pytest.mark.parametrize("teacher", ["thompson", "alp_gmm"])
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(change, problem, teacher):
    engineer = Engineer(Sums(), teacher)
    engineer.observe(observed(engineer))
    engineer.redesign()
    before = engineer.state_dict()
    with pytest.raises(InputError, match=problem):
        engineer.load_state_dict(json.loads(json.dumps(before)) | change)
    assert engineer.state_dict() == before


def test_a_redesign_that_fails_can_be_tried_again_as_if_it_had_not_begun():
    engineer, undisturbed = Engineer(Sums(), "thompson"), Engineer(Sums(), "thompson")
    for one in (engineer, undisturbed):
        one.observe(observed(one))
    before = engineer.state_dict()
    engineer.roll_out = fail  # of the trial, after the teacher proposed
    with pytest.raises(InputError, match="out of order"):
        engineer.redesign()
    engineer.roll_out = None
    assert engineer.state_dict() == before
    assert engineer.redesign().design == undisturbed.redesign().design
    assert engineer.state_dict() == undisturbed.state_dict()


def fail(*_: object) -> NoReturn:
    raise InputError("out of order")
