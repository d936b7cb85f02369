"""A judge that some text holds up, or whose process it ends, is named with the limit that would end it."""

import os
import signal
import time

import pytest

from lakewright.engineer import DesignSpace, Environment, Problem, Verdict
from lakewright.engineer.testing import find_faults


class Numbers(Environment):
    """Numbers to repeat; each kind of judge is planted."""

    space = DesignSpace(("one",), (), failures=("wrong",))

    def make(self, cell, rng):
        return Problem(f"{rng.randrange(10**9)}")

    def judge(self, problem, answer):
        return Verdict(False, 0.0, "wrong")


def look_for(**members) -> list:
    return find_faults(type("Planted", (Numbers,), members)(), seconds=0.1, limit=0.3).faults


def wait_for_ever(self, problem, answer):
    while len(answer) > 1000:
        pass
    return Verdict(False, 0.0, "wrong")


def read_in_code_that_no_signal_ends(self, problem, answer):
    if len(answer) > 1000:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(60)
    return Verdict(False, 0.0, "wrong")


def end_when_judging(self, problem, answer):
    if len(answer) > 1000:
        os.kill(os.getpid(), signal.SIGKILL)
    return Verdict(False, 0.0, "wrong")


HANGING = {
    wait_for_ever: "did not return within",
    read_in_code_that_no_signal_ends: "no return within",
    end_when_judging: "signal 9",
}


@pytest.mark.parametrize("judge", HANGING, ids=lambda judge: judge.__name__)
def test_a_judge_that_a_text_can_stop_is_named_with_the_limit_that_would_end_it(judge):
    fault = look_for(judge=judge)[-1]
    assert HANGING[judge] in fault.problem
    assert "or give the environment a judge_limit" in fault.problem
    assert fault.case.startswith("answer '")


def test_a_generator_that_does_not_return_needs_no_such_limit():
    def never_return(self, cell, rng):
        while True:
            pass

    assert "judge_limit" not in look_for(make=never_return)[0].problem
