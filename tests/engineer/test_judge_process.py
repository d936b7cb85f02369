"""A judge in a process of its own: no answer holds it up, and no answer makes the next one wait for a new start."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer import Environment, JudgeLimit, Verdict
from tests.support.environments.stuck import Arguments, Stuck
from tests.support.processes.commands import surroundings
from tests.support.refusals import refused

PROBLEM = Stuck().draw(Stuck().start(), 1, seed=0)[0]


def judge(answer: str) -> Verdict:
    """The verdict on an answer by the process of these tests."""
    return Stuck().check_verdict(PROBLEM, answer)


@pytest.mark.parametrize(
    "answer", ["1e999999999", "1e-999999999", "loop", "backtrack", "nest", "memory", "exit", "kill"]
)
def test_an_answer_that_exhausts_the_judge_or_ends_its_process_has_a_failure_within_the_limit(answer):
    judge("1")  # which starts the process
    begun = time.monotonic()
    assert judge(answer) == Verdict(False, 0.0, "late")
    assert judge(PROBLEM.answer) == Verdict(True, 1.0)
    assert time.monotonic() - begun < 4, "the limit is half a second, and nothing is imported again"


def test_the_process_is_another_one_and_stays_for_further_answers():
    first, second = judge("process").reward, judge("process").reward
    assert first == second != os.getpid()
    judge("exit")
    assert judge("process").reward not in (first, os.getpid())


def test_what_the_judge_prints_is_no_verdict_and_what_it_raises_is_one_line():
    assert judge("print") == Verdict(False, 0.0, "wrong")
    with pytest.raises(InputError, match=r"Stuck.judge: on 'raise' to .*: ValueError: no.*answer$") as caught:
        judge("raise")
    assert "\n" not in str(caught.value)


def test_a_copy_that_a_judge_makes_of_its_process_gives_no_verdict_to_the_next_answer():
    for answer in ("fork", PROBLEM.answer, "fork", "0"):
        assert judge(answer).valid == (answer == PROBLEM.answer), answer


@pytest.mark.parametrize("answer", ["\ud800", "\0", "a\r\nb", "9" * 10**5, "[" * 10**5, "\u2028"])
def test_any_text_comes_through(answer):
    assert judge(answer) == Verdict(False, 0.0, "wrong")


def test_environments_of_one_maker_share_a_process_and_keep_their_arguments():
    environments = [Arguments("a"), Arguments("b"), Arguments("a")]
    assert [one.check_verdict(PROBLEM, "b").valid for one in environments] == [False, True, False]


def test_threads_and_copies_of_this_process_get_their_own_verdicts():
    judge("1")
    found: dict[int, bool] = {}

    def work(number: int) -> None:
        found[number] = judge(PROBLEM.answer if number % 2 else "1").valid

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {number: bool(number % 2) for number in range(8)}
    reader, writer = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=lambda: writer.send(judge(PROBLEM.answer).valid))
    process.start()
    assert reader.poll(60)
    assert reader.recv()
    process.join(60)


def test_the_process_ends_with_the_program_that_asked_also_while_it_judges():
    command = [sys.executable, "-m", "lakewright.engineer.judge_process", *Stuck().maker()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=surroundings(), start_new_session=True) as process:
        process.stdout.readline()
        asked = msgspec.Raw(msgspec.json.encode((PROBLEM, "loop")))
        process.stdin.write(msgspec.json.encode({"words": [], "seconds": 0.5, "request": asked}) + b"\n")
        process.stdin.close()
        process.stdout.close()
        try:
            assert process.wait(20) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_an_environment_that_no_other_process_can_make_says_so():
    class Local(Stuck):
        """Made in a function."""

    with refused("judge_limit"):
        Local().check_verdict(PROBLEM, "1")

    class Missing(Environment):
        """Whose maker leads nowhere."""

        space, judge_limit = Stuck.space, JudgeLimit(1.0, "late")
        make, judge = Stuck.make, Stuck.judge

        def maker(self):
            return ("nowhere.py:Missing",)

    with refused("nowhere.py:Missing"):
        Missing().check_verdict(PROBLEM, "1")
