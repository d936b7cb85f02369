"""The check of environments names each planted fault with its smallest case, and passes what is right."""

import contextlib
import math
import mmap
import os
import random
import signal
import sys
import time

import msgspec
import pytest

from lakewright.engineer import Cell, Design, DesignSpace, Environment, Given, Knob, Problem, Verdict
from lakewright.engineer.testing import Report, check_environment, find_faults, report_text
from lakewright.engineer.testing.isolation import ROOM, Calls
from lakewright.engineer.testing.properties import Properties
from lakewright.engineer.testing.search import Deadline
from lakewright.engineer.testing.trials import Trials
from tests.support.refusals import refused


class Numbers(Environment):
    """Numbers to repeat, odd or even."""

    space = DesignSpace(
        ("small", "large"),
        (Knob(name="digits", low=1, high=3, step=1, reach=1, whole=True), Knob(name="odd", trait=True)),
        failures=("no_number", "wrong"),
        grades=("short",),
    )

    def make(self, cell, rng):
        number = rng.randrange(10 ** (6 * cell["digits"])) * 2 + cell["odd"]
        return Problem(f"{cell.stratum} {number}", str(number), data={"number": [number]})

    def judge(self, problem, answer):
        if not answer.isdecimal():
            return Verdict(False, 0.0, "no_number")
        right = answer == problem.answer
        return Verdict(right, float(right), "" if right else "wrong")


def good(self, cell, rng):
    return Numbers.make(self, cell, rng)


def read_clock(self, cell, rng):
    return Problem(f"{cell.stratum} {time.time_ns()}", "1")


def fail_at_bound(self, cell, rng):
    if cell["digits"] == 3 and cell["odd"]:
        raise ValueError("no such number")
    return good(self, cell, rng)


def never_return(self, cell, rng):
    while cell["digits"] > 1:
        pass
    return good(self, cell, rng)


def hold_on(self, cell, rng):
    while cell["digits"] > 2:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(60)
    return good(self, cell, rng)


def exit_program(self, cell, rng):
    sys.exit(0)


def end_process(self, cell, rng):
    if cell["odd"]:
        os._exit(0)
    return good(self, cell, rng)


def kill_process(self, cell, rng):
    if cell["odd"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return good(self, cell, rng)


def fork(self, cell, rng):
    with contextlib.suppress(OSError):
        os.fork()
    return good(self, cell, rng)


def change_cell(self, cell, rng):
    cell["digits"] = 2


def change_self(self, cell, rng):
    self.count = getattr(self, "count", 0) + 1
    return Problem(f"{self.count}", "1")


def ignore_rng(self, cell, rng):
    return good(self, cell, random.Random())


EVERY, EQUAL, TEXTS = "every cell is drawn", "equal draws are equal", "any text is judged"
GENERATORS = {
    "clock": (read_clock, EQUAL, "take all randomness from rng", "cell small 1 0, seed 0, index 0"),
    "own chance": (ignore_rng, EQUAL, "take all randomness from rng", "cell small 1 0, seed 0, index 0"),
    "state": (change_self, EQUAL, "keep no state", "cell small 1 0, seed 0, index 0"),
    "bound": (fail_at_bound, EVERY, "ValueError: no such number", "cell small 3 1, seed 0, index 0"),
    "endless": (never_return, EVERY, "did not return within 0.3 s", "cell small 2 0, seed 0, index 0"),
    "stubborn": (hold_on, "the code returns", "no return within 0.3 s", "cell small 3 0, seed 0, index 0"),
    "exit": (exit_program, EVERY, "make ended the program (0)", "cell small 1 0, seed 0, index 0"),
    "end": (end_process, EVERY, "make ended the program (0)", "cell small 1 1, seed 0, index 0"),
    "kill": (kill_process, "the code returns", "the process ended (signal 9)", "cell small 1 1, seed 0, index 0"),
    "fork": (fork, EVERY, "os.fork", "cell small 1 0, seed 0, index 0"),
    "wrong type": (lambda *_: "text", EVERY, "gave 'text'", "cell small 1 0, seed 0, index 0"),
    "no text": (lambda *_: Problem(3), EVERY, "return a Problem with texts", "cell small 1 0, seed 0, index 0"),
    "no JSON": (lambda *_: Problem("", data=object()), EVERY, "JSON", "cell small 1 0, seed 0, index 0"),
    "a tuple": (lambda *_: Problem("", data=(1,)), EVERY, "data (1,) are [1] after JSON", "cell small 1 0, seed 0"),
    "a set": (lambda *_: Problem("", data=[{1}]), EVERY, "let data be JSON values: no tuples, sets", "cell small 1 0"),
    "no number": (lambda *_: Problem("", data=[float("nan")]), EVERY, "are [None] after JSON", "cell small 1 0"),
    "a key": (lambda *_: Problem("", data={1: 2}), EVERY, "keys that are not texts", "cell small 1 0, seed 0"),
    "mutation": (change_cell, EVERY, "TypeError", "cell small 1 0, seed 0, index 0"),
    "wrong answer": (lambda *_: Problem("1", "x"), "the right answer is valid", "own answer 'x'", "cell small 1 0"),
}
JUDGES = {
    "raises": (lambda self, problem, answer: Verdict(int(answer) > 0, 0.0, "wrong"), "ValueError", "answer '' to"),
    "no verdict": (lambda *_: 1.0, "return a Verdict", "answer '' to"),
    "NaN": (lambda *_: Verdict(True, float("nan")), "give a finite number", "answer '' to"),
    "undeclared": (lambda *_: Verdict(False, 0.0, "strange"), "'strange' is not declared", "answer '' to"),
    "undeclared grade": (lambda *_: Verdict(True, 0.0, "", ("odd",)), "grade 'odd'", "answer '' to"),
    "valid failure": (lambda *_: Verdict(True, 0.0, "wrong"), "leave it empty", "answer '' to"),
    "chance": (lambda *_: Verdict(True, random.random()), "leave out chance", "answer '' to"),
    "surprise": (
        lambda self, problem, answer: Verdict(bool("w" in answer and 1 / 0), 0.0, "wrong"),
        "ZeroDivisionError",
        "answer 'w' to",
    ),
    "changes": (
        lambda self, problem, answer: problem.data["number"].append(1) or Verdict(True, 0.0),
        "judge modified the problem",
        "answer '' to",
    ),
}


def look_for(seconds: float = 0.1, **members) -> list:
    return find_faults(type("Planted", (Numbers,), members)(), seconds=seconds, limit=0.3).faults


@pytest.mark.parametrize("name", GENERATORS)
def test_a_planted_fault_of_a_generator_is_named_with_its_smallest_case(name):
    make, broken, words, case = GENERATORS[name]
    faults = [fault for fault in look_for(make=make) if fault.name == broken]
    assert len(faults) == 1
    assert words in faults[0].problem
    assert faults[0].case.startswith(case)
    assert "\n" not in str(faults[0])


@pytest.mark.parametrize("name", JUDGES)
def test_a_planted_fault_of_a_judge_is_named_with_its_smallest_case(name):
    judge, words, case = JUDGES[name]
    faults = [
        fault for fault in look_for(judge=judge, seconds=math.inf if name == "surprise" else 0.1) if fault.name == TEXTS
    ]
    assert len(faults) == 1
    assert words in faults[0].problem
    assert faults[0].case.startswith(case)


class Agents(Environment):
    """Numbers of as many digits as there are agents."""

    space = DesignSpace(
        ("one",),
        [Knob(name="digits", low=1, high=3, whole=True)],
        givens=[Given(name="agents")],
        failures=Numbers.space.failures,
    )

    def start(self):
        return self.space.uniform(agents=2)

    def drawable(self, cell):
        return cell["digits"] * cell["agents"] < 6

    def make(self, cell, rng):
        number = str(rng.randrange(10 ** (20 * cell["digits"] * cell["agents"])))
        return Problem(number, number)

    judge = Numbers.judge


def test_cells_have_the_givens_of_the_start():
    report = check_environment(Agents(), seconds=0.1)
    assert report.undrawable == {"one": ["one 3 | 2"]}
    assert report.drawn == 2


@pytest.mark.parametrize("name", ["self", "rows", "space", "bounds", "drawable", "given"])
def test_a_given_of_any_name_is_tried(name):
    space = DesignSpace(("one",), Numbers.space.knobs, givens=[Given(name=name)], failures=Numbers.space.failures)
    assert check_environment(type("Given", (Numbers,), {"space": space})(), seconds=0.1).drawn == 6


def exclude_middle(self, cell):
    return cell["digits"] != 2


def start_in_the_middle(self):
    return self.space.uniform()


MIDDLE = {"drawable": exclude_middle, "start": start_in_the_middle}
BAD_STARTS = {
    "not drawable": (MIDDLE, "drawable is False", "cell small 2 0"),
    "raises": ({"start": lambda self: 1 / 0}, "start raised ZeroDivisionError", "start()"),
    "missing": ({"start": lambda self: Design({"small": {"share": 1.0}})}, "small.digits is missing", "start()"),
    "no design": ({"start": lambda self: None}, "None is not a Design", "start()"),
}


@pytest.mark.parametrize("name", BAD_STARTS)
def test_a_start_that_is_not_legal_or_cannot_be_drawn_is_found(name):
    members, words, case = BAD_STARTS[name]
    (fault,) = [fault for fault in look_for(**members) if fault.name == "the start is drawn"]
    assert words in fault.problem
    assert fault.problem.endswith("override start")
    assert fault.case == case


def test_a_problem_of_the_start_alone_that_fails_is_found():
    class Wide(Numbers):
        space = DesignSpace(("one",), [Knob(name="digits", low=1, high=99, whole=True, bins=2)])

        def make(self, cell, rng):
            return Problem("", "1") if cell["digits"] != 50 else None

    fault = look_for(space=Wide.space, make=Wide.make)[0]
    assert (fault.name, fault.case) == ("the start is drawn", "cell one 50")
    assert fault.problem.endswith("or override start")


def test_problems_of_another_version_are_found():
    def draw(self, design, count, seed, first=0):
        return Numbers.draw(self, msgspec.structs.replace(design, version=0), count, seed, first)

    (fault,) = [fault for fault in look_for(draw=draw) if fault.name == "draws follow the design"]
    assert fault.problem == "a problem has version 0, but the design 1; pass it on"


def test_a_draw_that_never_returns_ends_the_check():
    def draw(self, design, count, seed, first=0):
        while True:
            math.sqrt(2)

    (fault,) = look_for(draw=draw)
    assert (fault.name, fault.case.startswith("design")) == ("the start is drawn", True)
    assert "did not return" in fault.problem


def test_the_limit_is_that_of_one_problem():
    def make(self, cell, rng):
        time.sleep(0.02)
        return good(self, cell, rng)

    slow = type("Slow", (Numbers,), {"make": make})()
    assert len(Trials(slow, Calls(mmap.mmap(-1, ROOM), 0.05)).draw(slow.start(), 4, 0)) == 4


def test_what_is_slow_is_tried_less():
    made = []

    class Slow(Numbers):
        space = DesignSpace(("one",), [Knob(name="digits", low=9, high=9, whole=True)])

        def make(self, cell, rng):
            made.append(1)
            return Problem(f"{rng.random()}", "1")

        def judge(self, problem, answer):
            return Verdict(answer == "1", 0.0, "" if answer == "1" else "wrong")

    properties = Properties(Slow(), Calls(mmap.mmap(-1, ROOM), 1.0), Report(environment=""))
    properties.draw_cells(properties.listed, Deadline(0.0))
    properties.took = dict.fromkeys(properties.problems, 9.0)
    for try_property, _ in properties.in_order():
        assert try_property(Deadline(0.0)) is None
    assert len(made) < 60
    assert "problems come too slowly" in properties.report.warnings[0]


def test_seeds_that_share_problems_are_found():
    def draw(self, design, count, seed, first=0):
        (cell,) = list(self.cells(design))[:1]
        return [self.draw_one(cell, 0, seed + first + place, design.version) for place in range(count)]

    assert "1 places on" in next(fault.problem for fault in look_for(draw=draw) if "seeds" in fault.name)


def test_a_seed_that_has_no_effect_is_found_where_a_cell_has_more_than_one_problem():
    def draw(self, design, count, seed, first=0):
        (cell, *_) = self.cells(design)
        return [self.draw_one(cell, 0, (first + place) % 2, design.version) for place in range(count)]

    assert "other seeds" in next(fault.problem for fault in look_for(draw=draw) if "seeds" in fault.name)
    warnings = check_environment(
        type("One", (Numbers,), {"make": lambda *_: Problem("1", "1")})(), seconds=0.1
    ).warnings
    assert "such as small 1 0: about 1 distinct problem; let make use rng" in warnings[0]


def test_problems_that_the_design_does_not_ask_for_are_found():
    def draw(self, design, count, seed, first=0):
        cell = Cell("small", (1, False))
        return [self.draw_one(cell, seed, first + place, design.version) for place in range(count)]

    (fault,) = [fault for fault in look_for(draw=draw) if fault.name == "draws follow the design"]
    assert "which is not in the design" in fault.problem
    assert fault.case.startswith('design {"large":{"share":1.0,"digits":1,"odd":0.0}}, seed 0')


def test_canonical_cells_that_cannot_be_drawn_are_found():
    def canonical(self, cell):
        return cell._replace(values=(max(cell.values[0], 3) + cell.values[1], cell.values[1]))

    def make(self, cell, rng):
        if cell["digits"] > 3:
            raise ValueError("no such number")
        return good(self, cell, rng)

    def draw_another(self, cell, count, seed, first=0):
        return [self.draw_one(cell._replace(values=(2, False)), seed, first + place) for place in range(count)]

    (fault,) = [fault for fault in look_for(make=make, canonical=canonical) if "mix" in fault.name]
    assert "ValueError: no such number" in fault.problem
    assert fault.case == "cell small 4 1"
    (fault,) = [fault for fault in look_for(draw_cell=draw_another) if "mix" in fault.name]
    assert "draw_cell gave a problem of cell" in fault.problem


def test_what_drawable_excludes_is_listed_and_a_stratum_without_problems_is_a_fault():
    def drawable(self, cell):
        return cell.stratum == "small" and cell.values != (3, True)

    report = find_faults(type("Some", (Numbers,), {"drawable": drawable, "make": fail_at_bound})(), seconds=0.1)
    assert report.undrawable["small"] == ["small 3 1"]
    assert [(fault.name, fault.case) for fault in report.faults] == [("every stratum is drawn", "stratum large")]
    assert "cannot be drawn: of stratum small the cells small 3 1" in report_text(report)


def test_a_right_environment_passes_and_its_report_measures():
    report = check_environment(Numbers(), seconds=1)
    assert report.drawn == report.cells == 12
    assert report.problems_per_second > 100
    assert report.verdicts_per_second > 100
    assert report.constant is not None
    assert report.constant[1] < 0.1
    assert min(report.distinct.values()) > 200
    assert report.warnings == []


def test_rates_of_what_fails_are_left_out():
    report = find_faults(type("Planted", (Numbers,), {"judge": lambda *_: None})(), seconds=0.1)
    assert "problems/s" in report_text(report)
    assert "verdicts/s" not in report_text(report)


def test_a_fault_fails_the_helper_with_its_case():
    planted = type("Planted", (Numbers,), {"make": fail_at_bound})()
    with pytest.raises(AssertionError, match="smallest case: cell small 3 1, seed 0, index 0"):
        check_environment(planted, seconds=0.1)


def test_what_is_easy_to_memorise_and_to_guess_is_told():
    class Few(Numbers):
        def make(self, cell, rng):
            return Problem(f"{cell.stratum} {rng.randrange(2)}", "7")

    warnings = " ".join(check_environment(Few(), seconds=0.1).warnings)
    assert "about 2 distinct problems" in warnings
    assert "always answering '7' is valid for 100% of the problems" in warnings


def test_what_is_no_environment_is_refused():
    with refused("Environment"):
        check_environment(3)
    with refused("seconds", "0"):
        check_environment(Numbers(), seconds=0)
