"""What a teacher, a roll-out or a caller gives an engineer beyond what can be is one line, and the engineer goes on."""

import copy
import json
import math
import pickle

import msgspec
import numpy as np
import pytest

from lakewright.engineer import Cell, Delta, DesignSpace, Edit, Engineer, EngineerSettings, Group, Knob
from lakewright.engineer.difficulty.model import DifficultySettings
from lakewright.engineer.proposal import propose_delta
from lakewright.engineer.tally import Drawn
from lakewright.engineer.trial.signals import TrialSettings
from tests.engineer.test_engineer_input import Proposes, observed
from tests.engineer.test_environment import Sums
from tests.engineer.test_faulty_environments import Teams, assert_line


@pytest.mark.parametrize(
    "delta",
    [
        Delta({"a": Edit({"n": math.nan}, "why")}),
        Delta({"zz": Edit({"n": 1}, "why")}),
        Delta({"a": Edit({"m": 1}, "")}),
    ],
)
def test_a_refused_proposal_that_no_file_can_hold_leaves_a_state_that_is_read_again(delta):
    candidates = (delta, Delta({"a": Edit({"n": 1}, "why")}))
    proposal = msgspec.structs.replace(propose_delta(delta), candidates=candidates)
    engineer = Engineer(Teams(), Proposes(proposal))
    decision = engineer.redesign()
    assert decision.attempts[-1].verdict.status == "refused"
    assert decision.attempts[-1].proposal.delta is None
    assert decision.attempts[-1].proposal.error in decision.explain()
    assert decision.attempts[-1].proposal.candidates == candidates[1:]
    state = json.loads(json.dumps(engineer.state_dict()))
    engineer.load_state_dict(state)
    assert json.loads(json.dumps(engineer.state_dict())) == state


def test_strata_that_are_numbers_of_numpy_become_those_of_python():
    row = {"share": 0.5, "terms": 2, "noise": 0.5}
    engineer = Engineer(Sums(), "random", Sums.space.design({np.int64(3): row, np.str_("sums"): row}))
    engineer.observe(observed(engineer))
    engineer.redesign()
    state = json.loads(json.dumps(engineer.state_dict()))
    engineer.load_state_dict(state)
    assert json.loads(json.dumps(engineer.state_dict())) == state
    for other in (3.0, True):
        assert_line(lambda other=other: Sums.space.design({other: row, "sums": row}), f"strata.{other} is unknown")


def test_problems_of_the_seed_of_those_held_out_are_refused():
    teams = Teams()
    held_out = teams.draw(teams.start(), 40, seed=1)
    for count in (1, 20):
        engineer = Engineer(teams, held_out=held_out, seed=1)
        assert_line(
            lambda engineer=engineer, count=count: engineer.draw(count), "seed is 1, the seed of the held-out problem"
        )
    engineer = Engineer(teams, held_out=held_out, seed=2)
    assert len(engineer.draw(20)) == 20


@pytest.mark.parametrize(
    ("give", "problem"),
    [
        (
            lambda problems, samples: [[one.answer] * (samples + 1) for one in problems],
            "give 4 answers to each problem",
        ),
        (lambda problems, samples: [[one.answer] * samples for one in problems], None),
    ],
)
@pytest.mark.parametrize("reverse", [True, False])
def test_rollouts_are_all_answers_to_the_problems_in_their_order(give, problem, reverse):
    teams = Teams()

    def roll_out(problems, samples, turn):
        groups = teams.groups(problems, give(problems, samples))
        return groups[::-1] if reverse else groups, 1

    engineer = Engineer(
        teams,
        Proposes(propose_delta(Delta({"a": Edit({"n": 1}, "why")}))),
        settings=EngineerSettings(trial=TrialSettings(share=0, boards=8, samples=4)),
        roll_out=roll_out,
    )
    if problem or reverse:
        assert_line(engineer.redesign, problem or "return the groups in the order of the problems")
    else:
        assert engineer.redesign().trial


HUGE = 10**400


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda engineer: engineer.space.uniform(agents=HUGE), "given.agents is 1000.*; give a finite number"),
        (lambda engineer: engineer.environment.draw(engineer.design, 1, 0, first=10**30), "draw: first is 1000"),
        (lambda engineer: Delta([1]), r"\[1\] is not a table; give a dict by stratum"),
        (
            lambda engineer: engineer.observe([changed(engineer, cell=Cell([1], (1,)))]),
            "not a cell of this environment",
        ),
        (
            lambda engineer: engineer.observe([changed(engineer, cell=Cell("a", None))]),
            "not a cell of this environment",
        ),
        (lambda engineer: engineer.observe([changed(engineer, reward=HUGE)]), "with finite rewards"),
        (lambda engineer: engineer.observe([changed(engineer, failures=None)]), "failures are None; give the number"),
        (lambda engineer: engineer.observe([changed(engineer, failures={"late": 1})]), "failures are {'late': 1}"),
        (lambda engineer: engineer.observe([changed(engineer, failures={"wrong": 50})]), "give at most one failure"),
        (lambda engineer: engineer.redesign(statistics={77: Drawn(1, {}, {})}), "statistics: 77 is not a stratum"),
    ],
)
def test_numbers_and_tables_that_cannot_be_are_one_line(call, problem):
    engineer = Engineer(Teams(), "random")
    before = engineer.state_dict()
    assert_line(lambda: call(engineer), problem)
    assert engineer.state_dict()["seen"] == before["seen"]
    assert engineer.redesign().next


def changed(engineer: Engineer, **change: object) -> Group:
    """A group with another part."""
    (problem,) = engineer.environment.draw(engineer.design, 1, seed=9)
    (group,) = engineer.environment.groups([problem], [[problem.answer, "?"]])
    return msgspec.structs.replace(group, **change)


@pytest.mark.parametrize("edit", [Edit({"n": HUGE}, "why"), Edit(None, "why")])
def test_an_edit_that_cannot_be_is_refused_by_the_guard(edit):
    assert Engineer(Teams()).judge_delta(Delta({"a": edit}), None).status == "refused"


def test_what_a_users_own_teacher_raises_or_keeps_is_one_line():
    teacher = Proposes(None)
    teacher.propose = lambda *_: {}["why"]
    engineer = Engineer(Teams(), teacher)
    assert_line(engineer.redesign, "Proposes.propose raised KeyError: 'why'; correct it")
    teacher.state_dict = lambda: {"count": np.int64(3)}
    assert_line(engineer.state_dict, "Proposes.state_dict: .*numpy.int64.*; return JSON values")


def test_an_engineer_and_its_cells_can_be_sent_to_another_process_and_copied():
    engineer = Engineer(Teams(), "random")
    cell = engineer.space.name_cell(engineer.draw(1)[0].cell)
    for one in (cell, engineer):
        assert pickle.dumps(one)  # which finds all classes by name
    again = copy.deepcopy(cell)
    assert (again, again["n"]) == (cell, cell["n"])
    assert copy.deepcopy(engineer).state_dict() == engineer.state_dict()


def test_rivals_that_no_file_can_hold_are_left_out_and_a_teacher_that_raises_for_them_is_one_line():
    good = Delta({"a": Edit({"n": 1}, "why")})
    answers = iter([propose_delta(good), propose_delta(Delta({"a": Edit({"n": math.nan}, "")})), None])
    teacher = Proposes(None)
    teacher.propose = lambda *_: next(answers)
    engineer = Engineer(Teams(), teacher, settings=EngineerSettings(proposals=2))
    proposal = engineer.redesign().attempts[-1].proposal
    assert proposal.delta == good
    assert all(math.isfinite(change) for delta in proposal.candidates for change in delta.edits["a"].changes.values())
    answers = iter([propose_delta(good), None])
    assert_line(engineer.redesign, "Proposes.propose gave None; return a Proposal")


def test_a_state_of_a_space_where_problems_get_harder_in_another_direction_is_refused():
    def make(**change):
        knob = Knob(name="n", low=1, high=5, step=1, whole=True, harder=change.pop("harder", 1))
        space = DesignSpace(("a", "b"), (knob,), **{"ranked": True} | change)
        return Engineer(type("Other", (Teams,), {"space": space})(), "random")

    state = make().state_dict()
    make().load_state_dict(state)
    make(harder=-1).load_state_dict(state | {"directions": ""})  # of an older version, which does not say
    for other, problem in (({"harder": -1}, "ranked, n 1, now by ranked, n -1"), ({"ranked": False}, "by not ranked")):
        assert_line(lambda other=other: make(**other).load_state_dict(state), problem)


def test_an_older_state_of_a_space_that_had_an_order_says_how_to_go_on():
    """Spaces had an order by default, which states did not record, nor that their model was a regression."""
    regression = EngineerSettings(difficulty=DifficultySettings(model="regression"))

    def make(**order):
        space = DesignSpace(("a", "b"), (Knob(name="n", low=1, high=5, step=1, whole=True),), **order)
        return Engineer(type("Other", (Teams,), {"space": space})(), "fixed", settings=regression)

    older = make(ranked=True)
    older.redesign()
    state = older.state_dict() | {"directions": ""}
    assert state["forecast"]
    assert_line(lambda: make().load_state_dict(state), "weights; load the state of this environment")
    make(ranked=True).load_state_dict(state)
