"""The tutorial runs from its first cell to its last, and marimo finds nothing wrong with it."""

import pytest

from tests.support.processes.commands import HOUSE
from tests.support.tools.own_environments import own_environment, run_there

TUTORIAL = HOUSE / "docs" / "examples" / "tutorial.py"


@pytest.mark.deep
def test_every_cell_of_the_tutorial_runs_with_a_short_training(tmp_path):
    python = own_environment("notebook", "marimo==0.25.2", "ipython")
    checked = run_there(python.with_name("marimo"), "check", "--strict", TUTORIAL)
    assert not checked.stdout.strip(), checked.stdout
    client = HOUSE / "tests" / "support" / "tools" / "tutorial_client.py"
    done = run_there(python, client, TUTORIAL, "--", "--minutes", "0.06", "--folder", tmp_path)
    assert done.stdout.endswith("five parts of a tutorial\n")
