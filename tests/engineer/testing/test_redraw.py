"""Another process, which has other hashes and later clocks, draws other problems where a generator reads these."""

import contextlib
import functools
import json
import mmap
import subprocess
import sys

import pytest
import torch

from lakewright.engineer import Cell
from lakewright.engineer.plugins import load_class
from lakewright.engineer.testing import find_faults
from lakewright.engineer.testing.isolation import ROOM, Calls
from lakewright.engineer.testing.redraw import RedrawRequest, redraw_elsewhere
from tests.support.deep import keep_quick

TEXT = """
from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict

class Letters(Environment):
    space = DesignSpace(("one",), (Knob(name="length", low=40, high=41, whole=True),))

    def make(self, cell, rng):
        names = {f"n{rng.randrange(10**9)}" for _ in range(cell["length"])}
        return Problem(" ".join(names), "x")

    def judge(self, problem, answer):
        return Verdict(answer == "x", 0.0, "" if answer == "x" else "wrong")
"""

CLOCKS = """
import datetime, time
from datetime import date
from lakewright.engineer import DesignSpace, Environment, Problem, Verdict

CLOCKS = {
    "time": lambda: time.time() // 86400,
    "time_ns": lambda: time.time_ns() // (86400 * 10**9),
    "monotonic": lambda: time.monotonic() // 3600,
    "monotonic_ns": lambda: time.monotonic_ns() // (3600 * 10**9),
    "perf_counter": lambda: time.perf_counter() // 3600,
    "strftime": lambda: time.strftime("%Y"),
    "localtime": lambda: time.localtime().tm_year,
    "gmtime": lambda: time.gmtime().tm_mon,
    "ctime": lambda: time.ctime()[-4:],
    "asctime": lambda: time.asctime()[-4:],
    "now": lambda: datetime.datetime.now().strftime("%Y-%m"),
    "now_utc": lambda: datetime.datetime.now(datetime.timezone.utc).month,
    "utcnow": lambda: datetime.datetime.utcnow().year,
    "today": lambda: datetime.datetime.today().year,
    "date_today": lambda: date.today().isoformat(),
    "clock_gettime": lambda: time.clock_gettime(time.CLOCK_REALTIME) // 86400,
    "clock_gettime_ns": lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC) // (3600 * 10**9),
    "constant": lambda: [
        repr(datetime.datetime(2020, 1, 1) + datetime.timedelta(days=1)),
        isinstance(datetime.datetime.min, datetime.datetime),
        time.strftime("%Y %H", time.gmtime(0)),
        time.ctime(0),
    ],
}

class Clocks(Environment):
    space = DesignSpace(tuple(CLOCKS), ())

    def make(self, cell, rng):
        return Problem(str(CLOCKS[cell.stratum]()))

    def judge(self, problem, answer):
        return Verdict(True, 1.0)
"""


def test_what_depends_on_hashes_is_found_by_another_process(tmp_path):
    file = tmp_path / "letters.py"
    file.write_text(TEXT)
    maker = (f"{file}:Letters",)
    report = find_faults(load_class(maker[0], {}, "environment", ())(), seconds=0.1)
    assert ["another process gave a different problem" in fault.problem for fault in report.faults] == [True]


HASHED = """
import random
from lakewright.engineer import DesignSpace, Environment, Problem, Verdict

class Hashed(Environment):
    space = DesignSpace(("one",), ())

    def make(self, cell, rng):
        return Problem(str(rng.random()), "x")

    def judge(self, problem, answer):
        return Verdict(answer == "x", 0.0, "" if answer == "x" else "wrong")

    def MEMBER(self, *where):
        return [
            Problem(str(random.Random(hash(one.prompt)).random()), "x", cell=one.cell, version=one.version, key=one.key)
            for one in super().MEMBER(*where)
        ]
"""


JUDGED = """
from lakewright.engineer import DesignSpace, Environment, Problem, Verdict

class Judged(Environment):
    space = DesignSpace(("one",), ())

    def make(self, cell, rng):
        return Problem(f"a colour of {rng.random()}", "red or blue")

    def judge(self, problem, answer):
        rewards = {hash(word) for word in answer.split()}
        valid = answer == problem.answer
        return Verdict(valid, 1.0 if valid else float(min(rewards, default=0)), "" if valid else "wrong")
"""


@pytest.mark.parametrize("member", ["draw", "draw_cell"])
def test_a_set_that_depends_on_hashes_is_found_by_another_process(tmp_path, member):
    file = tmp_path / "hashed.py"
    file.write_text(HASHED.replace("MEMBER", member))
    report = find_faults(load_class(f"{file}:Hashed", {}, "environment", ())(), seconds=0.1)
    (fault,) = report.faults
    assert "another process gave a different problem" in fault.problem
    assert fault.case.startswith(f"{member} of ")


def test_a_verdict_that_depends_on_hashes_is_found_by_another_process(tmp_path):
    file = tmp_path / "judged.py"
    file.write_text(JUDGED)
    report = find_faults(load_class(f"{file}:Judged", {}, "environment", ())(), seconds=0.1)
    (fault,) = report.faults
    assert "another process gave a different verdict" in fault.problem
    assert fault.case.startswith("answer 'red or blue or not' to 'a colour of ")


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow")
def test_another_process_has_later_clocks(tmp_path):
    (tmp_path / "clocks.py").write_text(CLOCKS)
    environment = load_class(maker := f"{tmp_path / 'clocks.py'}:Clocks", {}, "environment", ())()
    cases = [(Cell(name, ()), 0, 0) for name in environment.space.strata]
    later = redraw_elsewhere((maker,), RedrawRequest(cases), Calls(mmap.mmap(-1, ROOM), 1.0)).problems
    same = [case[0].stratum for case, other in zip(cases, later, strict=True) if environment.draw_one(*case) == other]
    assert same == ["constant"]


GUEST = """
import os, random, sys, threading, time
import numpy as np
from lakewright.engineer import DesignSpace, Environment, Problem, Verdict
WHEN_IMPORTED

class Guest(Environment):
    space = DesignSpace(("one",), ())

    def make(self, cell, rng):
        WHEN_DRAWN
        return Problem(str(rng.random()), "x")

    def judge(self, problem, answer):
        WHEN_JUDGED
        return Verdict(answer == "x", 0.0, "" if answer == "x" else "wrong")
"""
CHANGES = {
    "folder": ("", "os.chdir('/')", "", "the working folder when it drew"),
    "folder, when imported": ("os.chdir('/')", "", "", "the working folder when it was imported or made"),
    "torch": (
        *("import torch; torch.set_default_dtype(torch.float64)", "", "torch.set_grad_enabled(False)"),
        "torch's default dtype when it was imported or made; torch's gradients when it judged",
    ),
    "seed": ("", "random.seed(1)", "", "the random numbers of the process when it drew"),
    "NumPy's seed": ("", "", "np.random.seed(1)", "the random numbers of NumPy when it judged"),
    "variables": ("", "os.environ['MODE'] = 'x'", "", "the environment variables when it drew"),
    "torch's seed": ("import torch", "", "torch.manual_seed(1)", "the random numbers of torch when it judged"),
    "mask": ("", "os.umask(0)", "", "the mask of new files when it drew"),
    "a closed output": ("", "", "sys.stdout.close()", "standard output when it judged"),
    "an ignored signal": (
        *("import signal", "signal.signal(signal.SIGTERM, signal.SIG_IGN)", ""),
        "the handlers of signals when it drew",
    ),
    "warnings": ("import warnings", "", "warnings.simplefilter('error')", "warnings that are errors when it judged"),
    "garbage": ("import gc", "gc.disable()", "", "the collection of garbage when it drew"),
    "long numbers": ("", "sys.set_int_max_str_digits(0)", "", "the most digits of whole numbers when it drew"),
    "digits": ("", "", "sys.setrecursionlimit(5000)", "the limit of recursion when it judged"),
}


def check_guest(tmp_path, imported="", drawn="", judged=""):
    """The faults of a guest that does something when it is imported, draws or judges, and the seconds of the check."""
    words = {"WHEN_IMPORTED": imported, "WHEN_DRAWN": drawn or "pass", "WHEN_JUDGED": judged or "pass"}
    (tmp_path / "guest.py").write_text(functools.reduce(lambda text, item: text.replace(*item), words.items(), GUEST))
    default = torch.get_default_dtype()  # a guest that is imported here changes this process too
    try:
        with contextlib.chdir(tmp_path):
            environment = load_class(maker := f"{tmp_path / 'guest.py'}:Guest", {}, "environment", ())()
    finally:
        torch.set_default_dtype(default)
    with contextlib.chdir(tmp_path):
        report = find_faults(environment, seconds=0.1, maker=(maker,))
    return report.faults, report.seconds


@pytest.mark.parametrize("name", keep_quick(CHANGES, ("folder", "torch")))
def test_an_environment_that_changes_what_its_process_shares_is_named(tmp_path, name):
    *code, words = CHANGES[name]
    (fault,), _ = check_guest(tmp_path, *code)
    assert (fault.name, fault.case) == ("the process is not changed", f"{tmp_path / 'guest.py'}:Guest")
    assert f"it changed {words}" in fault.problem


def test_a_thread_without_an_end_holds_up_nothing(tmp_path):
    thread = "threading.Thread(target=time.sleep, args=(600,)).start()"
    faults, seconds = check_guest(tmp_path, f"'redraw' in sys.argv[0] and {thread}")
    assert faults == []
    assert seconds < 30


@pytest.mark.deep
def test_the_command_ends_though_the_environment_has_a_thread_without_an_end(tmp_path):
    code = "threading.Thread(target=time.sleep, args=(600,)).start()"
    words = {"WHEN_IMPORTED": code, "WHEN_DRAWN": "print('drawn')", "WHEN_JUDGED": "pass"}
    (tmp_path / "guest.py").write_text(functools.reduce(lambda text, item: text.replace(*item), words.items(), GUEST))
    command = [
        sys.executable,
        "-m",
        "lakewright.experiments.cli",
        "check",
        "guest.py:Guest",
        "--seconds",
        "0.1",
        "--json",
    ]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=40, check=False)
    assert (ended.returncode, json.loads(ended.stdout)["faults"]) == (0, []), ended.stderr
