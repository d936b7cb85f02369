"""The tutorials run from their first cell to their last, and marimo finds nothing wrong with them."""

from pathlib import Path

import pytest

from tests.support.processes.commands import HOUSE
from tests.support.tools.own_environments import own_environment, run_there

TUTORIALS = HOUSE / "docs" / "examples"
TOOLS = HOUSE / "tests" / "support" / "tools"


def run_tutorial(name: str, client: str, *options: str | Path) -> str:
    """What a client prints of the tutorial of a name, which `marimo check` has passed."""
    python = own_environment("notebook", "marimo==0.25.2", "ipython")
    checked = run_there(python.with_name("marimo"), "check", "--strict", TUTORIALS / name)
    assert not checked.stdout.strip(), checked.stdout
    return run_there(python, TOOLS / client, TUTORIALS / name, "--", *options).stdout


@pytest.mark.deep
def test_every_cell_of_the_tutorial_runs_with_a_short_training(tmp_path):
    shown = run_tutorial("tutorial.py", "tutorial_client.py", "--minutes", "0.06", "--folder", tmp_path)
    assert shown.endswith("five parts of a tutorial\n")


@pytest.mark.deep
def test_every_cell_of_the_tutorial_of_an_environment_runs_with_a_short_training():
    shown = run_tutorial("environment_tutorial.py", "environment_tutorial_client.py", "--rounds", "2")
    assert shown.endswith("four parts of a tutorial\n")
