"""A call of a user's environment is a plain call: signals, forks, threads and time limits of others work in it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from lakewright.engineer import Problem, Verdict
from tests.engineer.test_environment import BOARDS, Sums
from tests.support.processes.commands import HOUSE
from tests.support.refusals import refused


class Stopped(BaseException):
    """Raised by a handler of somebody's alarm, as pytest-timeout does."""


class CancelledError(Exception):
    """Raised by a handler of SIGTERM, as that of torch's elastic agent."""


def judge_by(action) -> Verdict:
    """The verdict of an environment whose judge does this first."""

    class Acting(Sums):
        def judge(self, problem: Problem, answer: str) -> Verdict:
            action()
            return Verdict(True, 1.0)

    return Acting().check_verdict(BOARDS[0], "17")


@pytest.mark.parametrize("error", [SystemExit(143), Stopped(), KeyboardInterrupt()], ids=repr)
def test_what_a_signals_handler_raises_is_not_the_environments_error(error):
    before = signal.signal(signal.SIGTERM, lambda number, frame: raise_(error))
    try:
        with pytest.raises(type(error)) as caught:
            judge_by(lambda: os.kill(os.getpid(), signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value is error


def raise_(error: BaseException):
    raise error


class Handler:
    """A handler that is an object, or its method."""

    def __call__(self, number, frame):
        raise CancelledError("by the agent")

    def handle(self, number, frame):
        raise CancelledError("by the agent")


@pytest.mark.parametrize("handler", [Handler(), Handler().handle])
def test_an_exception_of_a_handler_passes_too(handler):
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(CancelledError, match="by the agent"):
            judge_by(lambda: os.kill(os.getpid(), signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_exit_and_an_error_of_the_judge_itself_are_one_line():
    with refused("judge:", "'17'", "(3)"):
        judge_by(lambda: sys.exit(3))
    with refused("judge:", "'17'", "CancelledError:"):
        judge_by(lambda: raise_(CancelledError("x")))


def test_a_judge_may_work_in_processes_and_threads_of_its_own():
    def fork() -> None:
        process = multiprocessing.get_context("fork").Process(target=os.getpid)
        process.start()
        process.join(20)
        assert process.exitcode == 0

    assert judge_by(fork).valid
    found: list[Verdict] = []
    thread = threading.Thread(target=lambda: found.append(judge_by(lambda: None)))
    thread.start()
    thread.join(20)
    assert found[0].valid


def test_draws_and_verdicts_leave_the_process_as_it_was():
    program = """
import os, signal, sys, threading
from tests.engineer.test_environment import DESIGN, Sums
hooks, numbers = [], sorted(signal.valid_signals())
sys.addaudithook(lambda event, _: hooks.append(event) if event == "sys.addaudithook" else None)
before = os._exit, list(map(signal.getsignal, numbers)), threading.enumerate(), dict(os.environ)
environment = Sums()
environment.verdicts(environment.draw(DESIGN, 3, seed=0), ["1", "2", "3"])
assert before == (os._exit, list(map(signal.getsignal, numbers)), threading.enumerate(), dict(os.environ))
assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
assert not hooks, hooks
class Ends(Sums):
    def judge(self, problem, answer):
        os._exit(7)
Ends().verdicts(environment.draw(DESIGN, 1, seed=0), ["1"])
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (7, ""), "os._exit is the process's own"
