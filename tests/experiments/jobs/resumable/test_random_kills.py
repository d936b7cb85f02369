"""Every long command, killed at random instants or robbed of a worker, ends as if nothing had happened."""

import contextlib
import os
import sys
from pathlib import Path

import pytest

from tests.support.processes.killable import server
from tests.support.processes.long_commands import CASES, Case, write_inputs
from tests.support.processes.random_kills import Command, Kills, kill_at_random

INSTANTS = int(os.environ.get("LAKEWRIGHT_KILLS", "100"))  # at which each command is killed in a deep test


@pytest.fixture
def inputs(tmp_path) -> Path:
    """A folder with what the commands read."""
    write_inputs(tmp_path)
    return tmp_path


def kill(folder: Path, case: Case, instants: int) -> Kills:
    """Kills a command of one process, or one of several that share its work, and prints how often."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server(case.kind)) for _ in range(case.shares)]
        command = Command(servers, case.lines(folder), case.workers, case.goodbye)
        kills = kill_at_random(command, folder / case.out, case.state, instants, seed=0)
    print(f"{' '.join(case.words[:2])}: {kills}", file=sys.stderr)
    return kills


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_a_command_that_is_killed_at_many_instants_ends_the_same(inputs, name):
    kills = kill(inputs, CASES[name], INSTANTS)
    assert kills.instants >= INSTANTS
    assert all(end == kills.undisturbed for end in kills.ends), str(kills)
