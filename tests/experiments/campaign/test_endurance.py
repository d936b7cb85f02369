"""The endurance test watches memory, threads, files and processes, and tells growth from noise."""

from contextlib import nullcontext

import psutil
import pytest

from lakewright.experiments.campaign import Look, Watched, endurance, endurance_table, watch
from lakewright.experiments.campaign.endurance import PAUSE, endure
from tests.support.processes.commands import assert_refused

QUIET = Look(100.0, 10, 20, 3)
GROWN = {
    "memory": Look(106.0, 10, 20, 3),
    "threads": Look(100.0, 11, 20, 3),
    "files": Look(100.0, 10, 21, 3),
    "processes": Look(100.0, 10, 20, 4),
}


@pytest.mark.parametrize("what", GROWN)
def test_a_command_is_flat_unless_something_grows(what):
    assert Watched("run", 1.0, 5, QUIET, Look(104.0, 9, 20, 3)).flat
    grown = Watched("run", 1.0, 5, QUIET, GROWN[what])
    assert not grown.flat, what
    assert endurance_table([grown]).splitlines()[-1].split("|")[-2].strip() == "no"


def test_a_command_that_finishes_nothing_shows_nothing():
    assert not Watched("run", 1.0, 0, QUIET, QUIET).flat


def test_a_command_that_ends_while_it_is_watched_is_named():
    with pytest.raises(RuntimeError, match=r"`lakewright generate --count x` ended with 2; run it by itself"):
        watch("generate", ["generate", "--count", "x"], 10 * PAUSE, int, print)


class Endless(psutil.Process):
    """This very process, as one that was begun and does not end."""

    def poll(self) -> None:
        return None


@pytest.fixture
def endless(monkeypatch):
    monkeypatch.setattr(endurance, "PAUSE", 0.01)
    monkeypatch.setattr(endurance, "_process", lambda words: nullcontext(Endless()))


def test_a_command_is_watched_from_its_first_piece_of_work_on(endless):
    done, looked = iter([0, 0, 0, *[1] * 1000]), []
    watched = watch("run", [], 0.005, lambda: next(done), lambda looks: looked.append(next(done)))
    assert watched.done == 1
    assert looked
    assert all(looked), "no look before the first piece of work"


def test_a_command_that_never_finishes_anything_is_given_up(endless, monkeypatch):
    monkeypatch.setattr(endurance, "PATIENCE", 0.001)
    with pytest.raises(RuntimeError, match=r"`lakewright run` finished nothing in 0.001 minutes"):
        watch("run", ["run"], 1, int, print)


def test_no_time_at_all_is_refused(capsys):
    assert_refused(capsys, ("bench", "--endurance", "0"), "--endurance is 0; give more than 0 minutes")


@pytest.mark.deep
def test_a_run_and_a_sweep_of_some_minutes_get_on_and_take_no_more_and_more():
    for watched in endure(3):
        assert watched.done > 0, watched
        assert watched.flat, watched
