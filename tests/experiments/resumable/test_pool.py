"""Work in processes side by side: results come home, and nobody outlives the one that began it."""

import subprocess
import sys
import time

import pytest

from experiments.resumable import work_on
from tests.support.power_cuts import alive, wait_for

PROGRAM = [sys.executable, "-m", "tests.support.pool_work"]
PATIENCE = 60  # seconds


def test_workers_end_with_the_process_that_began_them_however_it_ends(tmp_path):
    with subprocess.Popen([*PROGRAM, str(tmp_path)]) as parent:
        for piece in (1, 2):
            wait_for(tmp_path / f"{piece}.pid")
        parent.kill()
    deadline = time.monotonic() + PATIENCE
    for piece in (1, 2):
        worker = int((tmp_path / f"{piece}.pid").read_text())
        while alive(worker):
            assert time.monotonic() < deadline, f"worker {worker} goes on alone"
            time.sleep(0.05)


def test_all_pieces_come_home_from_two_processes(tmp_path):
    (tmp_path / "hurry").touch()
    assert subprocess.run([*PROGRAM, str(tmp_path)], timeout=PATIENCE).returncode == 0
    assert (tmp_path / "found").read_text() == "[(1, 1), (2, 4), (3, 9)]"
    workers = {(tmp_path / f"{piece}.pid").read_text() for piece in (1, 2, 3)}
    assert 1 <= len(workers) <= 2


def test_one_worker_works_here_piece_by_piece_and_its_errors_come_out():
    assert list(work_on([1, 2], str, workers=1)) == [(1, "1"), (2, "2")]
    with pytest.raises(ValueError, match="invalid literal"):
        list(work_on(["x"], int, workers=1))
