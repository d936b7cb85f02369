"""Processes end with the one that started them, however they were started and however it ends."""

import os
import subprocess
import sys

import pytest

from lakewright.core_jax.support import starter
from tests.support.processes.child_processes import STARTED
from tests.support.processes.commands import surroundings
from tests.support.processes.watching import PATIENCE, assert_ends, wait_for


@pytest.mark.parametrize("how", STARTED)
def test_a_process_ends_with_the_one_that_started_it(tmp_path, how):
    program = [sys.executable, "-m", "tests.support.processes.child_processes", how, str(tmp_path / "child")]
    with subprocess.Popen(program, env=surroundings()) as parent:
        wait_for(tmp_path / "child")
        parent.kill()
    assert_ends(int((tmp_path / "child").read_text()))


def test_a_process_whose_starter_is_gone_already_ends_at_once():
    program = (
        "import time; from lakewright.core_jax.support import end_with_starter; end_with_starter(); time.sleep(60)"
    )
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (name,) = starter()
    env = {**surroundings(), name: starter()[name].replace(str(os.getpid()), str(gone.pid))}
    assert subprocess.run([sys.executable, "-c", program], env=env, check=False, timeout=PATIENCE).returncode == 1


def test_a_process_without_a_starter_keeps_running():
    program = "from lakewright.core_jax.support import end_with_starter; end_with_starter(); print('here')"
    for env in ({}, {next(iter(starter())): "another-machine 1"}):
        done = subprocess.run(
            [sys.executable, "-c", program], env=surroundings() | env, check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr
