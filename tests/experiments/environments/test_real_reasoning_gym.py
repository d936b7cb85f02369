"""The real package reasoning-gym, in an environment of its own; and what a sweep over all its tasks found."""

import json
import runpy

import pytest

from tests.support.processes.commands import HOUSE
from tests.support.tools.own_environments import own_environment, run_there

SCRIPT = HOUSE / "docs" / "site" / "gym_table.py"


@pytest.mark.deep
def test_its_own_curriculum_fails_where_the_same_thresholds_work_here():
    python = own_environment("reasoning_gym", "reasoning-gym==0.1.25")
    told = run_there(python, HOUSE / "tests" / "support" / "environments" / "reasoning_gym_check.py")
    assert told.stdout.endswith("102 curricula\n"), told.stdout


@pytest.mark.deep
def test_the_sweep_finds_the_same_of_a_task_again(tmp_path):
    python = own_environment("reasoning_gym", "reasoning-gym==0.1.25")
    known = json.loads((HOUSE / "docs" / "data" / "reasoning_gym.json").read_text())["tasks"]
    for name in ("chain_sum", "caesar_cipher", "spell_backward", "boxnet"):
        run_there(python, SCRIPT, "task", name, tmp_path / name)
        found = json.loads((tmp_path / name).read_text())
        assert {**found, "per_second": 0} == {**known[name], "per_second": 0}


def test_at_least_95_curricula_can_be_used_and_the_rest_have_reasons():
    tasks = json.loads((HOUSE / "docs" / "data" / "reasoning_gym.json").read_text())["tasks"]
    assert len(tasks) == 102
    assert sum("bug" not in found for found in tasks.values()) >= 95
    assert all(found["bug"] for found in tasks.values() if "bug" in found)


def test_the_page_has_the_table_of_the_sweep():
    made = runpy.run_path(str(SCRIPT))
    page = made["PAGE"].read_text()
    table = json.loads(made["DATA"].read_text())
    assert made["make_page"](page, table) == page, "the page is stale: run `python docs/site/gym_table.py`"
