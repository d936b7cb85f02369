"""The rules of RLVE, reasoning-gym, prime-rl and Syllabus as arms of a study of a user's own environment."""

import pytest

from lakewright.experiments.studies.runner import run_study
from lakewright.experiments.studies.study import plan_study
from tests.support.processes.commands import HOUSE
from tests.support.samples.tiny_runs import quick

RULES = ("rlve", "coaching", "difficulty_pools", "learning_progress")
SPEC = f"""
preset = "text"
budget = 100
baseline = "fixed"
seeds = [0]

[settings]
environment = "{HOUSE}/docs/examples/largest.py:Largest"
stages = 2
text.max_tokens = 4
model = {{ hidden = 32, layers = 1, heads = 2, mlp = 32, positions = 64 }}
warmup = {{ steps = 2, batch = 8 }}
grpo = {{ steps = 1, prompts = 4, group = 2 }}
trial.enabled = false
validation = {{ boards = 1 }}

[test]
boards = 2
seed = 7

[arms]
fixed = {{ teacher = "fixed" }}
""" + "\n".join(f'{rule} = {{ teacher = "{rule}" }}' for rule in RULES)


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "rules.toml").write_text(SPEC)
    return tmp_path / "rules.toml"


def test_each_rule_is_an_arm(spec):
    assert [run.settings.teacher for run in plan_study(spec).runs] == ["fixed", *RULES]


@pytest.mark.deep
def test_a_study_compares_them_on_a_users_environment(spec, tmp_path):
    with quick():
        results, failures = run_study(spec, tmp_path / "study")
    assert failures == {}
    assert {run.arm for run in results.runs} == {"fixed", *RULES}
    drawn = {run.arm: run.drawn for run in results.runs}
    assert len({str(designs[-1]) for designs in drawn.values()}) >= 3, "rules redesign differently"
