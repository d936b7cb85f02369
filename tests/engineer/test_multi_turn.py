"""Environments of several turns: episodes give verdicts, what needs a text to judge says so, and check plays them."""

import mmap
import random
import re

import numpy as np
import pytest

from lakewright.engineer import (
    DesignSpace,
    Engineer,
    Group,
    Knob,
    MultiTurnEnvironment,
    MultiTurnEpisode,
    Outcomes,
    Problem,
    Verdict,
)
from lakewright.engineer.multi_turn import list_tools
from lakewright.engineer.plugins import load_class
from lakewright.engineer.testing import Report, find_faults
from lakewright.engineer.testing.isolation import ROOM, Calls
from lakewright.engineer.testing.parts import make_properties
from lakewright.engineer.testing.search import Deadline
from tests.support.processes.commands import HOUSE
from tests.support.refusals import refused


class Counting(MultiTurnEpisode):
    """Counts to a number."""

    def reset(self, problem):
        self.wanted, self.count = problem.data, 0
        return f"Count to {self.wanted}."

    def add(self, step: int) -> str:
        """Adds to the count.

        Args:
            step: what is added.
        """
        self.count += step
        return str(self.count)

    def verdict(self):
        return Verdict(True, 1.0) if self.count == self.wanted else Verdict(False, 0.0, "wrong")


class Counts(MultiTurnEnvironment):
    """Numbers to count to."""

    space = DesignSpace(("near", "far"), (Knob(name="digits", low=1, high=2, step=1, whole=True),))
    episode = Counting

    def make(self, cell, rng):
        number = rng.randint(1, 9) * 10 ** (cell["digits"] + 5 * (cell.stratum == "far")) + rng.randrange(10**9)
        return Problem(f"number {number}", data=number)

    def make_episode(self):
        return self.episode()


def play(environment, problem, right):
    episode = environment.make_episode()
    assert environment.begin_episode(episode, problem) == f"Count to {problem.data}."
    episode.add(problem.data - (not right))
    return environment.end_episode(episode, problem)


def test_an_engineer_redesigns_from_the_verdicts_of_episodes():
    environment, rng = Counts(), random.Random(0)
    held_out = environment.draw(environment.start(), 40, seed=9)
    engineer = Engineer(environment, held_out=held_out)
    for problem in engineer.draw(40):
        verdicts = [play(environment, problem, rng.random() < 0.5) for _ in range(4)]
        engineer.observe([Group.from_verdicts(problem, verdicts)])
    found = Outcomes.of(environment.space, held_out, [play(environment, one, rng.random() < 0.5) for one in held_out])
    assert engineer.redesign(found).design.version == 1


@pytest.mark.parametrize("call", ["groups", "verdicts", "tallies", "check_verdict", "judge"])
def test_what_needs_a_text_to_judge_says_where_verdicts_come_from(call):
    environment = Counts()
    problems = environment.draw(environment.start(), 1, seed=0)
    given = (problems, [["7"]] if call == "groups" else ["7"]) if call.endswith("s") else (problems[0], "7")
    with refused("Counts", "several turns"):
        getattr(environment, call)(*given)


def test_an_episode_that_does_not_end_or_gives_no_text_is_a_line():
    class Endless(Counting):
        def verdict(self):
            return None

    class Numbers(Counting):
        def reset(self, problem):
            return problem.data

    environment = Counts()
    (problem,) = environment.draw(environment.start(), 1, seed=0)
    with refused("Endless.verdict", "'number", "did not end"):
        environment.end_episode(Endless(), problem)
    with refused("Numbers.reset", "'number", problem.data):
        environment.begin_episode(Numbers(), problem)
    with refused("Elsewhere", "make_episode"):
        type("Elsewhere", (MultiTurnEnvironment,), {"space": Counts.space, "make": Counts.make})().make_episode()


def test_tools_are_the_public_methods_each_with_types_and_a_docstring():
    assert list(list_tools(Counting())) == ["add"]

    def untyped(self, step):
        """Adds."""

    def silent(self, step: int): ...

    def brief(self, step: int):
        """Adds a step."""

    hidden = {"reset": Counting.reset, "verdict": Counting.verdict, "_add": Counting.add}
    for tools, told in [
        ({"add": untyped}, ["Mine.add", "step", "type"]),
        ({"add": silent}, ["Mine.add", "docstring"]),
        ({"add": brief}, ["Mine.add", "docstring", "step"]),
        ({}, ["Mine", "no tools"]),
    ]:
        with refused(*told):
            list_tools(type("Mine", (MultiTurnEpisode,), hidden | tools)())


def change(environment=Counts, **members):
    changed = type("Changed", (Counting,), members)
    return type("Changes", (environment,), {"episode": changed})()


def find_played(environment):
    """The fault of episodes, if any, and the report, both found in this process."""
    report = Report(environment="")
    properties = make_properties(environment, Calls(mmap.mmap(-1, ROOM), 10.0), report)
    properties.draw_cells(properties.listed, Deadline())
    fault = properties.play_any_calls(Deadline.after(0.05))
    properties.score_pool(list(properties.problems.values()), Deadline.after(0))
    return fault, report


def remember(self, problem):
    self.count = getattr(self, "count", 0)
    self.wanted = problem.data
    return str(self.count)


def break_down(self, step: int) -> str:
    """Adds.

    Args:
        step: what is added.
    """
    return {}[step]


def hang(self, problem):
    while True:
        pass


async def add_later(self, step: int) -> str:
    """Adds when the event loop comes to it.

    Args:
        step: what is added.
    """
    self.count += step
    return str(self.count)


PLAYED = "any calls lead to a verdict"


@pytest.mark.parametrize(
    ("members", "told", "case"),
    [
        ({"verdict": lambda self: None}, "the episode did not end; return a Verdict", "no call on 'number"),
        ({"verdict": lambda self: Verdict(False, 0.0, "odd")}, "failure 'odd' is not declared", "no call on"),
        ({"reset": remember}, "course; let reset restore", r"add\(step=-?1\) on"),
        ({"add": break_down}, "add raised KeyError: 0; correct it", r"add\(step=0\) on"),
        ({"add": lambda self, step: ""}, "argument step has no type", r"make_episode\(\)"),
    ],
    ids=["endless", "undeclared", "state", "error", "untyped"],
)
def test_the_check_of_environments_names_a_fault_of_episodes(members, told, case):
    fault, _ = find_played(change(**members))
    assert fault.name == PLAYED
    assert told in fault.problem
    assert re.match(case, fault.case), fault.case


def test_the_check_ends_an_episode_that_hangs():
    (fault,) = find_faults(change(reset=hang), seconds=0.2, limit=0.3).faults
    assert (fault.name, fault.case[:7]) == (PLAYED, "no call")
    assert "reset did not return within 0.3 s" in fault.problem


def test_the_check_passes_episodes_and_warns_of_what_it_did_not_play():
    fault, report = find_played(Counts())
    assert (fault, report.warnings, report.verdicts_per_second > 0) == (None, [], True)
    assert find_played(change(add=add_later))[0] is None
    _, report = find_played(change(verdict=lambda self: Verdict(True, 1.0)))
    assert report.warnings == ["an episode without any call is valid for 100% of the problems"]
    elsewhere = type("Elsewhere", (Counts,), {"make_episode": MultiTurnEnvironment.make_episode})
    fault, report = find_played(elsewhere())
    assert (fault, report.warnings) == (None, ["there is no make_episode, so no episode was tried"])


def test_the_example_of_hunts_passes_the_check():
    fault, report = find_played(load_class(f"{HOUSE / 'docs' / 'examples' / 'hunt.py'}:Hunt", {}, "environment", ())())
    assert (fault, report.warnings) == (None, [])


RIGHT = Verdict(True, 1.0)


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ([RIGHT], ["1 verdict", "2 problems"]),
        ([RIGHT, None], ["verdict", "None", "Verdict"]),
        ([RIGHT, 1.0], ["1.0", "Verdict"]),
        ([RIGHT, Verdict(np.True_, 1.0)], ["valid", "bool(...)"]),
        ([RIGHT, Verdict(False, 0.0, "bored")], ["failure 'bored'", "no_guess"]),
    ],
    ids=str,
)
def test_held_out_verdicts_that_are_none_are_a_line(verdicts, told):
    hunt = load_class(f"{HOUSE / 'docs' / 'examples' / 'hunt.py'}:Hunt", {}, "environment", ())()
    problems = hunt.draw(hunt.space.uniform(), 2, seed=1)
    with refused("Outcomes.of", *told):
        Outcomes.of(hunt.space, problems, verdicts)
    with refused("Outcomes.of", "not a cell of this environment"):
        Outcomes.of(hunt.space, [problems[0], Problem("?")], [RIGHT, RIGHT])
    with refused("group", "None", "Problem"):
        Group.from_verdicts(None, [RIGHT])
