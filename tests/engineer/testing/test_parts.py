"""A check in parts gives the report of a check in one process, whatever it finds."""

import math

import msgspec
import pytest

from lakewright.engineer.testing import find_faults
from lakewright.engineer.testing.report import Report
from lakewright.experiments.jobs.executors import Local, Task, in_order

FILE = """
import signal
import time

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict


class Right(Environment):
    space = DesignSpace(
        ("small", "large"),
        (Knob(name="digits", low=1, high=9, step=1, reach=1, whole=True), Knob(name="odd", trait=True)),
        failures=("wrong",),
    )

    def drawable(self, cell):
        return cell.values != (9, True)

    def make(self, cell, rng):
        number = rng.randrange(10 ** (6 * cell["digits"])) * 2 + cell["odd"]
        return Problem(f"{cell.stratum} {number}", str(number))

    def judge(self, problem, answer):
        return Verdict(answer == problem.answer, 0.0, "" if answer == problem.answer else "wrong")


class RaisesAtBound(Right):
    def make(self, cell, rng):
        if cell["digits"] == 8:
            raise ValueError("no such number")
        return super().make(cell, rng)


class ReturnsNot(Right):
    def make(self, cell, rng):
        while cell["digits"] == 8:
            pass
        return super().make(cell, rng)


class StartsNot(Right):
    def start(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(600)


class JudgesByClock(Right):
    def judge(self, problem, answer):
        return Verdict(time.time_ns() % 2 > 2, 0.0, "unheard of")


class EndsWhenJudging(Right):
    def judge(self, problem, answer):
        raise SystemExit(0) if answer else ValueError("no answer")


class DrawsOneStratum(Right):
    def drawable(self, cell):
        return cell.stratum == "small"


class ReadsClock(Right):
    def make(self, cell, rng):
        return Problem(f"{cell.stratum} {time.time() // 1e6}", "1")
"""
CLASSES = [line.split()[1].partition("(")[0] for line in FILE.splitlines() if line.startswith("class ")]
QUICK = ("RaisesAtBound",)  # "Right" is shared by two workers below


@pytest.fixture
def file(tmp_path):
    (tmp_path / "environments.py").write_text(FILE)
    return tmp_path / "environments.py"


def checked(file, name: str, share=None, limit: float = 5.0) -> Report:
    """The report on a class of the file, with time for everything, and without what a clock says."""
    from lakewright.engineer.plugins import load_class

    maker = (f"{file}:{name}",)
    environment = load_class(*maker, {}, "environment", ())()
    found = find_faults(environment, seconds=math.inf, limit=limit, maker=maker, share=share)
    return msgspec.structs.replace(found, seconds=0.0, problems_per_second=0.0, verdicts_per_second=0.0)


def test_a_start_that_never_returns_is_found_before_the_parts_are_shared(file):
    (fault,) = checked(file, "StartsNot", one_by_one, limit=0.3).faults
    assert (fault.problem, fault.case) == ("no return within 0.3 s; end its loop", "start()")


def one_by_one(function, parts):
    return map(function, parts)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.deep) for name in CLASSES]
)
def test_the_report_is_that_of_one_process(file, name):
    alone = checked(file, name)
    assert checked(file, name, one_by_one) == alone
    assert bool(alone.faults) == (name != "Right")
    assert name != "Right" or alone.undrawable


@pytest.mark.deep
def test_two_workers_share_the_parts(file):
    given = []

    def share(function, parts):
        given.extend(parts)
        return in_order(executor, function, parts)

    with Local(2, Task(prepare=int)) as executor:
        assert checked(file, "Right", share) == checked(file, "Right")
    assert len(given) > 10
