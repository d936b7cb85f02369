"""Work in processes side by side: all results arrive, and no worker outlives the process that began it."""

import gc
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_raw
from lakewright.experiments.jobs.executors import Local, Task
from tests.support.processes.pool_work import gpus_of
from tests.support.processes.watching import PATIENCE, assert_ends, wait_for
from tests.support.refusals import refused

PROGRAM = [sys.executable, "-m", "tests.support.processes.pool_work"]


def test_workers_end_with_the_process_that_began_them_however_it_ends(tmp_path):
    with subprocess.Popen([*PROGRAM, str(tmp_path)]) as parent:
        for piece in (1, 2):
            wait_for(tmp_path / f"{piece}.pid")
        parent.kill()
    for piece in (1, 2):
        assert_ends(int((tmp_path / f"{piece}.pid").read_text()))


def test_all_pieces_come_home_from_two_processes(tmp_path):
    (tmp_path / "hurry").touch()
    ended = subprocess.run([*PROGRAM, str(tmp_path)], timeout=PATIENCE, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), "no lock of a worker is left behind"
    assert (tmp_path / "found").read_text() == "[(1, 1), (2, 4), (3, 9)]"
    workers = {(tmp_path / f"{piece}.pid").read_text() for piece in (1, 2, 3)}
    assert 1 <= len(workers) <= 2


def test_bad_input_is_refused_in_the_same_line_as_in_this_process():
    line = r"^no\\nsuch\.json: cannot be read \(No such file or directory\); check the path$"
    with Local(1, Task(prepare=int)) as executor, pytest.raises(InputError, match=line):
        executor.submit(read_raw, Path("no\nsuch.json")).result()


def test_each_worker_has_its_share_of_the_gpus_and_too_many_workers_are_refused(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    with Local(3, Task(gpus=0.5, prepare=int)) as executor:
        assert executor.submit(gpus_of, 0).result() in ("4", "5")
    with Local(1, Task(gpus=2, prepare=int)) as executor:
        assert executor.submit(gpus_of, 0).result() == "4,5"
    with refused(2, "4 GPUs", 3):
        Local(2, Task("run", gpus=2))


def test_each_worker_has_its_share_of_the_threads_and_this_process_keeps_its_own(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with Local(1, Task(cores=3, prepare=int)) as executor:
        assert executor.submit(os.getenv, "OMP_NUM_THREADS").result() == "3"
    assert "OMP_NUM_THREADS" not in os.environ


def test_workers_end_where_their_executor_is_forgotten():
    executor = Local(1, Task(prepare=int))
    executor.submit(str, 1).result()
    assert multiprocessing.active_children()
    del executor
    gc.collect()
    assert not multiprocessing.active_children()
