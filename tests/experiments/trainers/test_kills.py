"""SIGKILL at random instants: a trainer with an engineer, started again, ends with the same versions and counts."""

import pytest

from tests.support.processes.killable import server
from tests.support.processes.random_kills import Command, kill_at_random
from tests.support.samples.engineer_folders import state_of
from tests.support.tools.trainer_environments import make_python


@pytest.mark.parametrize("instants", [1, pytest.param(20, marks=pytest.mark.deep)])
def test_a_trainer_that_is_killed_ends_with_the_same_versions_and_counts(tmp_path, instants):
    out = tmp_path / "e"
    with server("trainers with an engineer") as one:
        kills = kill_at_random(Command([one], [[str(out)]]), out, state_of, instants, seed=1)
    assert kills.instants == instants
    assert all(end == kills.undisturbed for end in kills.ends), str(kills)
    assert kills.undisturbed["status"]["version"] == 3


# The examples that run in this environment, and the part of their folder that is the engineer's.
HERE = {
    "trl": ("trl_engineer.py", "engineer", 2),  # of whose answers none is valid: nothing is easier
    "turns": ("trl_hunt.py", "engineer", 2),
    "torch": ("torch_loop.py", "", 1),
    "gymnasium": ("gymnasium_engineer.py", "", 2),
}
THERE = {"verifiers": ("taskset_engineer.py", "engineer", 2), "verl": ("verl_engineer.py", "", 2)}
THERE["openenv"] = ("openenv_engineer.py", "", 2)


def assert_example_ends_the_same(tmp_path, name, example, engineer, versions, **options):
    """Kills an example twenty times. engineer: the engineer's part of its folder. versions: the fewest at the end."""
    out = tmp_path / name
    with server(f"examples with {name}", tmp_path / "said", **options) as one:
        command = Command([one], [[example, str(out)]])
        kills = kill_at_random(command, out, lambda out: state_of(out / engineer), 20, seed=2)
    assert kills.instants == 20
    assert all(end == kills.undisturbed for end in kills.ends), str(kills)
    assert kills.undisturbed["status"]["version"] >= versions


@pytest.mark.deep
@pytest.mark.parametrize("name", HERE)
def test_an_example_that_is_killed_ends_with_the_same_versions_and_counts(tmp_path, name):
    assert_example_ends_the_same(tmp_path, name, *HERE[name])


@pytest.mark.deep
@pytest.mark.parametrize("name", THERE)
def test_an_example_of_another_environment_does_so_too(tmp_path, name):
    assert_example_ends_the_same(tmp_path, name, *THERE[name], python=make_python(name))


@pytest.mark.deep
def test_trl_that_tries_proposals_is_killed_and_ends_the_same(tmp_path):
    out = tmp_path / "trl"
    with server("trainings with trials", tmp_path / "said") as one:
        kills = kill_at_random(Command([one], [[str(out)]]), out, state_of, 20, seed=3)
    assert all(end == kills.undisturbed for end in kills.ends), str(kills)
    assert kills.undisturbed["status"]["spent"]["trials"] > 0
