"""Work in processes side by side: all results arrive, and no worker outlives the process that began it."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_raw
from lakewright.experiments.resumable.pool import work_on
from lakewright.experiments.resumable.worker_processes import ATTEMPTS, WorkerDiedError
from tests.support.processes.pool_work import noted, notes
from tests.support.processes.watching import PATIENCE, assert_ends, wait_for

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


def test_a_worker_that_is_killed_costs_its_own_piece_only_and_one_that_kills_all_is_given_up(tmp_path):
    pieces = ("a", "die once", "die", "b")
    found = dict(work_on(pieces, partial(noted, tmp_path), workers=2))
    died = found.pop("die")
    assert isinstance(died, WorkerDiedError)
    assert str(died) == "3 workers died of it; is there enough memory?"
    assert found == {"a": "A", "die once": "DIE ONCE", "b": "B"}
    assert {piece: len(begun) for piece, begun in notes(tmp_path, pieces).items()} == {
        "a": 1,
        "die once": 2,
        "die": ATTEMPTS,
        "b": 1,
    }


def test_one_worker_works_here_piece_by_piece_and_its_errors_come_out():
    assert list(work_on([1, 2], str, workers=1)) == [(1, "1"), (2, "2")]
    with pytest.raises(ValueError, match="invalid literal"):
        list(work_on(["x"], int, workers=1))


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_input_is_refused_in_the_same_line_wherever_it_is_found(workers):
    line = r"^no\\nsuch\.json: cannot be read \(No such file or directory\); check the path$"
    with pytest.raises(InputError, match=line):
        list(work_on([Path("no\nsuch.json")], read_raw, workers=workers))
