"""Successive halving: after each round the better half of the configs goes on, and the rest is stopped."""

import json
from pathlib import Path

import pytest

from lakewright.experiments.cli import main
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.studies import runner
from lakewright.experiments.studies.random_configs import Configs
from lakewright.experiments.studies.results_table import tabulate_results
from lakewright.experiments.studies.runner import run_study
from lakewright.experiments.studies.study import StudyFolder, plan_study
from tests.support.machines.power_cuts import PowerCutError, cut_power
from tests.support.processes.commands import assert_refused
from tests.support.refusals import refused
from tests.support.samples.tiny_runs import quick

STUDY = Path(__file__).with_name("study.toml")


@pytest.fixture
def spec(tmp_path) -> Path:
    """Four configs in two rounds, of one stage each."""
    text = STUDY.read_text().partition("[arms]")[0].replace('baseline = "fixed"', "")
    path = tmp_path / "spec.toml"
    path.write_text(f"{text}[configs]\ncount = 4\nrounds = 2\nhole_ratios = [0.2]\nwait_ratios = [0.5]\n")
    return path


@pytest.mark.deep
def test_half_of_the_configs_goes_on_and_what_the_others_would_have_spent_is_stated(tmp_path, spec, capsys):
    out = tmp_path / "study"
    with quick():
        with pytest.MonkeyPatch.context() as patch:
            cut_power(patch, renamings=60, before=True)
            with pytest.raises(PowerCutError):
                run_study(spec, out)
        results, failures = run_study(spec, out)
    assert failures == {}
    folder, plan = StudyFolder(out), plan_study(spec)
    stages = {run.name: len(folder.run(run).finished_stages()) for run in plan.runs}
    assert sorted(stages.values()) == [1, 1, 2, 2]
    assert results.stopped.stages == {name: count for name, count in stages.items() if count == 1}
    first = {run.name: read_record(folder.run(run).stage(0).validation, Validation) for run in plan.runs}
    went_on, stopped = (
        [first[name].valid.count("1") for name, count in stages.items() if count == wanted] for wanted in (2, 1)
    )
    assert min(went_on) >= max(stopped)
    assert sorted(f"{run.arm}-s{run.seed}" for run in results.runs) == sorted(set(stages) - set(results.stopped.stages))
    assert results.missing == []
    assert 0 < results.stopped.saved < 2 * plan.spec.budget
    assert f"about {results.stopped.saved} tokens saved" in tabulate_results(results)
    assert main(["study", str(spec), "--out", str(out), "--results-only", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stopped"]["stages"] == results.stopped.stages


def test_a_part_of_the_configs_cannot_be_halved(tmp_path, spec, capsys):
    command = ["study", str(spec), "--out", str(tmp_path / "study"), "--arms", "config-00"]
    assert_refused(capsys, command, "the rounds of configs compare them all; leave them out")


def test_there_are_no_more_rounds_than_configs_can_be_halved():
    assert Configs(count=4, rounds=3).rounds == 3
    with refused("rounds", 4, "at most 3", kind=ValueError):
        Configs(count=4, rounds=4)


def test_without_rounds_the_plan_of_a_search_is_as_before(tmp_path, spec):
    spec.write_text(spec.read_text().replace("rounds = 2\n", ""))
    whole = plan_study(spec).runs[0].settings
    assert (whole.stages, whole.grpo.steps) == (1, 1)
    spec.write_text(spec.read_text().replace("steps = 1,", "steps = 5,").replace("count = 4", "count = 4\nrounds = 3"))
    parts = plan_study(spec).runs[0].settings
    assert (parts.stages, parts.grpo.steps) == (4, 2)
    spec.write_text(spec.read_text().replace("rounds = 3", "rounds = 9"))
    with refused("rounds", 9):
        plan_study(spec)


@pytest.mark.deep
def test_a_config_that_failed_is_neither_stopped_nor_goes_on(tmp_path, spec, monkeypatch):
    def fails(settings, run, *rest):
        if run.folder.name == "config-01-s0":
            raise ZeroDivisionError
        run_loop(settings, run, *rest)

    run_loop = runner.run_loop
    monkeypatch.setattr(runner, "run_loop", fails)
    with quick():
        results, failures = run_study(spec, tmp_path / "study")
    assert list(failures) == results.missing == ["config-01-s0"]
    assert (len(results.stopped.stages), len(results.runs)) == (1, 2)
