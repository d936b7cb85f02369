"""Bad input of an engineer is one line, and leaves the engineer and its teacher as they were."""

import json
import math
from types import MappingProxyType
from typing import NoReturn

import msgspec
import numpy as np
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer import Cell, Delta, DesignSpace, Edit, Engineer, EngineerSettings, Group, Knob, Problem
from lakewright.engineer.difficulty import Observation
from lakewright.engineer.guard import GuardSettings
from lakewright.engineer.proposal import propose_delta
from lakewright.engineer.tally import Tally
from lakewright.engineer.teachers.gain import GainTeacher
from lakewright.engineer.trial import TrialSettings
from tests.engineer.test_environment import Sums
from tests.engineer.test_faulty_environments import TEAMS, Teams, assert_line
from tests.support.refusals import refused

OTHER = DesignSpace(("long",), (Knob(name="words"),))
TRIED = EngineerSettings(trial=TrialSettings(share=0))
STRANGE = Problem("?", cell=OTHER.cell("long", words=0.5))


class Learns:
    """A teacher with this state."""

    def __init__(self, state=MappingProxyType({})) -> None:
        self.state = state

    def propose(self, evidence, design, space, key):
        return propose_delta(Delta({}))

    def state_dict(self):
        return self.state if self.state is None else dict(self.state)

    def load_state_dict(self, state) -> None:
        self.state = state


class Bare(Learns):
    """A teacher with an option that has no default."""

    def __init__(self, rate: float) -> None:
        super().__init__({"rate": rate})


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"environment": Sums}, ["environment is the class Sums", "Sums()"]),
        ({"environment": 3}, ["3", "Environment"]),
        ({"design": OTHER.uniform()}, ["strata.long", "sums, 3"]),
        ({"design": {"sums": {}}}, ["{'sums': {}}", "Design", "space.design"]),
        ({"held_out": [STRANGE]}, ["held_out", "cell ('long',"]),
        ({"held_out": []}, ["held_out"]),
        ({"held_out": 3}, ["held_out", 3, "tuple"]),
        ({"held_out": ["1 + 1"]}, ["held_out", "'1 + 1'", "Problem"]),
        ({"teacher": 3}, ["teacher", 3, "propose"]),
        ({"teacher": Learns}, ["teacher is the class Learns", "Learns()"]),
        ({"teacher": Learns(), "options": {"rate": 1}}, ["options {'rate': 1}", "class"]),
        ({"teacher": Learns(None)}, ["Learns.state_dict", None, "dict of JSON"]),
        ({"teacher": Learns({"table": np.zeros(2)})}, ["Learns.state_dict", "ndarray", "JSON"]),
        ({"teacher": f"{__name__}:Bare"}, ["rate", "Bare", "no default"]),
        ({"teacher": "self"}, ["tools", "Tools(ask=...)"]),
        ({"settings": {"difficulty.model": "regression"}}, ["regression", "gain", "such as difficulty"]),
        ({"settings": {"difficulty.model": "regression"}, "teacher": GainTeacher()}, ["regression", "GainTeacher"]),
        (
            {"settings": {"difficulty.model": "regression"}, "teacher": "matched_random", "options": {"match": "gain"}},
            ["regression", "matched_random"],
        ),
        ({"settings": 3}, ["engineer: settings", 3, "EngineerSettings"]),
        ({"settings": {"trial": {"boards": "a"}}}, ["engineer: settings: trial.boards", "'a'"]),
        ({"settings": {"trial.board": 50}}, ["engineer: settings: trial", "board"]),
        ({"settings": {"trail.boards": 50}}, ["engineer: settings", "trail"]),
        ({"settings": {"guard": Sums()}}, ["engineer: settings: guard", "Sums"]),
        ({"settings": EngineerSettings(proposals="a")}, ["engineer: settings: proposals", "'a'"]),
        ({"settings": EngineerSettings(guard=3)}, ["engineer: settings: guard", 3]),
        ({"tools": "x", "teacher": "self"}, ["engineer: tools", "'x'", "Tools"]),
        ({"roll_out": 5}, ["engineer: roll_out", 5, "function"]),
        ({"roll_out": lambda problems, samples: None}, ["engineer: roll_out", "three arguments", "turn"]),
        ({"seed": 2**70}, ["seed", 2**70, "whole numbers"]),
        ({"rounds": 0}, ["rounds", 0, "whole numbers"]),
        ({"rounds": "3"}, ["rounds", "'3'", "whole numbers"]),
        ({"options": 3}, ["teacher_options", 3]),
    ],
)
def test_what_an_engineer_cannot_use_is_refused(parts, told):
    with refused(*told):
        Engineer(**({"environment": Sums()} | parts))


def observed(engineer: Engineer) -> list[Group]:
    problems = engineer.draw(4)
    return engineer.environment.groups(problems, [[problem.answer, "x"] for problem in problems])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 1}, ["version 1", "version 0", "load_state_dict"]),
        ({"reward": math.nan}, ["reward nan"]),
        ({"cell": STRANGE.cell}, ["cell ('long',"]),
        ({"cell": Cell("sums", (math.nan, True))}, ["cell ('sums', (nan"]),
        ({"cell": Cell("sums", ("2", True))}, ["cell ('sums', ('2'"]),
        ({"cell": Cell("sums", (2.5, True))}, ["cell ('sums', (2.5"]),
        ({"cell": Cell("sums", (2, 0.5))}, ["cell ('sums', (2, 0.5"]),
        ({"cell": "sums"}, ["group", "cell 'sums'", "Cell"]),
        ({"version": "3"}, ["version '3'", "whole numbers"]),
        ({"version": -1}, ["version -1", "whole numbers"]),
        ({"completions": 0, "valid": 0}, ["0 of 0 valid", "version 0", "at least one answer"]),
        ({"valid": 99}, ["99 of 2 valid"]),
        ({"valid": True}, ["True of 2 valid"]),
        ({"failures": {"wrong": -1}}, ["whole numbers"]),
        ({"spread": math.inf}, ["finite rewards"]),
    ],
)
def test_a_group_of_another_design_is_refused_and_none_is_noted(change, told):
    engineer = Engineer(Sums())
    good, *_ = groups = observed(engineer)
    before = engineer.state_dict()
    with refused(*told):
        engineer.observe([*groups, msgspec.structs.replace(good, **change)])
    assert engineer.state_dict() == before


def test_rewards_in_the_place_of_groups_are_refused():
    with refused("observe: 1.0 is not a Group", "environment.groups"):
        Engineer(Sums()).observe([1.0, 0.0])


@pytest.mark.parametrize("groups", [None, 3, "ab"])
def test_groups_that_are_no_list_are_refused(groups):
    with refused("observe: groups"):
        Engineer(Sums()).observe(groups)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"statistics": 3}, [3, "dict of statistics"]),
        ({"training": 3}, ["training", 3]),
        ({"cases": 3}, ["cases", 3]),
    ],
)
def test_further_evidence_of_another_form_is_refused(parts, told):
    with refused(*told):
        Engineer(Sums()).redesign(**parts)


@pytest.mark.parametrize("outcomes", [[1], {"sums": 1}])
def test_outcomes_that_are_no_tallies_are_refused(outcomes):
    with refused("dict of tallies", "Environment"):
        Engineer(Sums()).redesign(outcomes)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"space": OTHER.signature()}, ["state", "this environment"]),
        ({"format": 9}, ["format", 9, "version"]),
        ({"teacher": {"counts": 3}}, ["teacher", "same teacher"]),
        ({"teacher": {}}, ["teacher", "same teacher"]),
        ({"drawn": -1}, ["drawn", -1]),
        ({"standing": {"strata": {"long": {}}}}, ["strata.long"]),
        ({"standing_valid": "xyz"}, ["standing_valid", "'xyz'", "0 or 1"]),
    ],
)
@pytest.mark.parametrize("teacher", ["thompson", "alp_gmm"])
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(change, told, teacher):
    engineer = Engineer(Sums(), teacher)
    engineer.observe(observed(engineer))
    engineer.redesign()
    before = engineer.state_dict()
    with refused(*told):
        engineer.load_state_dict(json.loads(json.dumps(before)) | change)
    assert engineer.state_dict() == before


DAMAGED = {
    "an unknown stratum": (("observations", 0, "cell"), ["zz", [2, 1], []], ["observations", "cell", "zz"]),
    "too few values": (("observations", 0, "cell"), ["sums", [2], []], ["observations", "cell", "sums"]),
    "no groups": (("observations", 0, "groups"), 0, ["Observation", "observe_groups"]),
    "too much success": (("observations", 0, "success"), 99.0, ["Observation", "99.0"]),
    "an effect that is no number": (("forecast", "model", "abilities", "mean", 0, 0), math.nan, ["mean", "nan"]),
    "too few strata": (("forecast", "model", "abilities", "mean"), [[1.0]], ["forecast", "numbers for each"]),
    "another grid": (("forecast", "grid", 0, "cell"), ["zz", [2, 1], []], ["forecast", "cell", "zz"]),
    "an old design": (("history", 0, "design", "strata"), {"zz": {}}, ["design", "strata.zz"]),
    "old outcomes": (("history", 0, "outcomes"), {"zz": {"problems": 1, "valid": 1}}, ["history", "'zz'"]),
    "a version": (("design", "version"), -3, ["design: version", -3, "at least 0"]),
    "a group": (("seen", 0, "group", "completions"), 0, ["seen", "group", "of 0 valid"]),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_state_with_a_damaged_part_is_refused_before_it_is_used(name):
    path, value, told = DAMAGED[name]
    engineer = Engineer(Sums(), "fixed")
    engineer.observe(observed(engineer))
    engineer.redesign()
    engineer.observe(observed(engineer))
    before = engineer.state_dict()
    damaged = part = json.loads(json.dumps(before))
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with refused("state: ", *told):
        engineer.load_state_dict(damaged)
    assert engineer.state_dict() == before


def test_a_state_of_another_seed_is_refused_unless_it_is_an_older_one_that_does_not_say():
    state = Engineer(Sums(), seed=3).state_dict()
    with refused("state: seed is 3", 4):
        Engineer(Sums(), seed=4).load_state_dict(state)
    Engineer(Sums(), seed=3).load_state_dict(state)
    Engineer(Sums(), seed=4).load_state_dict({name: part for name, part in state.items() if name != "seed"})


def test_a_state_says_whose_it_is():
    thompson, fixed = Engineer(Sums(), "thompson"), Engineer(Sums(), "fixed")
    with refused("state:", "ThompsonTeacher", "FixedTeacher"):
        fixed.load_state_dict(thompson.state_dict())
    older = fixed.state_dict()
    del older["teacher_type"]
    fixed.load_state_dict(older)
    with refused("counts", "same teacher"):
        fixed.load_state_dict(older | {"teacher": {"counts": 3}})


@pytest.mark.parametrize("found", [None, ([], 1), ("ab", 1), (3, 1), ([], -1), [[], 1]])
def test_rollouts_that_are_no_groups_are_refused_and_the_redesign_may_be_tried_again(found):
    engineer = Engineer(Sums(), "random", roll_out=lambda *_: found, settings=TRIED)
    engineer.observe(observed(engineer))
    before = engineer.state_dict()
    with refused("roll_out", "problems"):
        engineer.redesign()
    assert engineer.state_dict() == before


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (lambda engineer, *_: engineer.judge_delta({"edits": {}}, None), ["judge_delta: delta", "edits", "Delta"]),
        (lambda engineer, *_: engineer.judge_delta(Delta({}), 3), ["judge_delta: forecast", 3, "Forecast"]),
        (lambda engineer, *_: engineer.fit_forecast(3), ["fit_forecast: observations", 3, "tuple"]),
        (lambda engineer, groups, _: engineer.fit_forecast(groups), ["Group", "Observation"]),
        (lambda engineer, *_: engineer.fit_forecast([SEEN_ELSEWHERE]), ["cell ('long',"]),
        (lambda engineer, *_: engineer.fit_forecast([], before=3), ["fit_forecast: before", 3, "Forecast"]),
        (lambda engineer, _, decision: engineer.propose(decision.evidence, None, 0), ["propose: key", 0]),
        (lambda engineer, *_: engineer.propose(3, None, 0), ["propose: evidence", 3, "Evidence"]),
        (lambda engineer, *_: engineer.try_proposal(3, [], None, None), ["try_proposal: verdict", 3, "Guard"]),
    ],
)
def test_a_step_that_is_given_something_else_says_what_it_needs(step, told):
    engineer = Engineer(Sums())
    groups = observed(engineer)
    engineer.observe(groups)
    decision = engineer.redesign()
    with refused(*told):
        step(engineer, groups, decision)


SEEN_ELSEWHERE = Observation(STRANGE.cell, 1, 1.0, None)


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        ({"zz": Edit({}, "why")}, "edits.zz: stratum zz is not in the design"),
        ({"sums": Edit({"zz": 1.0}, "why")}, "edits.sums.zz is unknown; choose from share, terms, noise"),
        ({"sums": Edit({"terms": "x"}, "why")}, "edits.sums.terms: x is not finite; give a number"),
        ({"sums": 3}, "edits.sums: 3 is not an Edit; give an Edit"),
    ],
)
def test_a_delta_that_names_something_else_is_refused_by_the_guard(edits, problem):
    verdict = Engineer(Sums()).judge_delta(Delta(edits), None)
    assert verdict.status == "refused"
    assert problem in verdict.reasons[0]


def test_a_redesign_that_fails_can_be_tried_again_as_if_it_had_not_begun():
    engineer, undisturbed = (Engineer(Sums(), "thompson", settings=TRIED) for _ in range(2))
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


class Proposes:
    """A teacher that always proposes the same."""

    def __init__(self, proposal: object) -> None:
        self.proposal = proposal

    def propose(self, evidence, design, space, key):
        """The proposal."""
        return self.proposal

    def state_dict(self):
        """Nothing."""
        return {}

    def load_state_dict(self, state):
        """Nothing."""


@pytest.mark.parametrize("change", [np.float64(1), np.float32(1), np.int64(1)])
def test_numbers_of_numpy_become_those_of_python_that_a_state_can_hold(change):
    teacher = Proposes(propose_delta(Delta({"a": Edit({"n": change}, "why")})))
    row = {"share": np.float64(0.5), "n": np.int64(4), "odd": np.float32(0.5)}
    engineer = Engineer(Teams(), teacher, TEAMS.design({"a": row, "b": row}, agents=np.float64(3)))
    assert engineer.redesign().design.strata["a"]["n"] == 5
    state = json.loads(json.dumps(engineer.state_dict()))
    assert state["design"]["given"] == {"agents": 3.0}
    Engineer(Teams(), teacher).load_state_dict(state)


@pytest.mark.parametrize(
    "tally",
    [
        Tally(10, 2.5),
        Tally(10, 20),
        Tally(10, -5),
        Tally(10, math.nan),
        Tally(np.int64(10), 5),
        Tally(4, 1, {"wrong": 5}),
    ],
)
def test_counts_that_cannot_be_are_refused(tally):
    engineer = Engineer(Teams())
    assert_line(lambda: engineer.redesign({"a": tally}), r"outcomes: Tally\(.* give whole numbers, at most")
    assert engineer.redesign({"a": Tally(10, 5)}).next


def test_a_teacher_that_proposes_nothing_is_one_line():
    engineer = Engineer(Teams(), Proposes(None))
    assert_line(engineer.redesign, "Proposes.propose gave None; return a Proposal")


def test_limits_of_the_guard_that_do_not_suit_the_space_are_refused_at_once():
    for guard, problem in (
        (GuardSettings(reach={"m": 1.0}), "guard: reach.m is unknown; choose from share, n, odd"),
        (GuardSettings(most={"m": 1.0}), "guard: most.m is unknown; choose from n, odd"),
        (GuardSettings(floor=0.6), "guard: floor 0.6 x 2 strata is more than 1; choose at most 0.5"),
    ):
        assert_line(lambda guard=guard: Engineer(Teams(), settings=EngineerSettings(guard=guard)), problem)


def test_a_trial_uses_neither_problems_that_were_trained_on_nor_those_of_small_seeds():
    teams, tried = Teams(), []

    def roll_out(problems, samples, turn):
        tried.extend(problems)
        return teams.groups(problems, [["1", "2"] * (samples // 2)] * len(problems)), 1

    proposes = Proposes(propose_delta(Delta({"a": Edit({"n": 1}, "why")})))
    engineer = Engineer(teams, proposes, roll_out=roll_out, settings=TRIED)
    trained = engineer.draw(256)
    engineer.observe(teams.groups(trained, [["1", "2"]] * 256))
    assert engineer.redesign().trial
    known = {problem.key for problem in (*trained, *teams.draw(teams.start(), 256, seed=1))}
    assert tried
    assert not known & {problem.key for problem in tried}
