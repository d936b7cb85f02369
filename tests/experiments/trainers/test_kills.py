"""SIGKILL at random instants: a trainer with an engineer, started again, ends with the same versions and counts."""

import pytest

from tests.support.processes.killable import server
from tests.support.processes.random_kills import Command, kill_at_random
from tests.support.samples.engineer_folders import state_of


@pytest.mark.parametrize("instants", [2, pytest.param(20, marks=pytest.mark.deep)])
def test_a_trainer_that_is_killed_ends_with_the_same_versions_and_counts(tmp_path, instants):
    out = tmp_path / "e"
    with server("trainers with an engineer") as one:
        kills = kill_at_random(Command([one], [[str(out)]]), out, state_of, instants, seed=1)
    assert kills.instants == instants
    assert all(end == kills.undisturbed for end in kills.ends), str(kills)
    assert kills.undisturbed["status"]["version"] == 3


@pytest.mark.deep
def test_trl_that_is_killed_ends_with_the_same_versions_and_counts(tmp_path):
    out = tmp_path / "trl"
    with server("examples with trl", tmp_path / "said") as one:
        command = Command([one], [["trl_engineer.py", str(out)]])
        kills = kill_at_random(command, out, lambda out: state_of(out / "engineer"), 20, seed=2)
    assert all(end == kills.undisturbed for end in kills.ends), str(kills)
    assert kills.undisturbed["status"]["version"] == 3
