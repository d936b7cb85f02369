"""Folders of an earlier version (commit 72e1425, before the house had rooms) are read; other formats are refused.

`old_folders` holds what the commands `run`, `study`, `sweep` and `benchmark eval` left, without checkpoints, pictures.
"""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakewright.engineer.delta import edit_design
from lakewright.engineer.trial import Trial
from lakewright.experiments.boards.sweep import folder as sweep_folder
from lakewright.experiments.environments.lake import lake_space
from lakewright.experiments.loop.records.history import describe_stage, read_chapters
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import DecisionRecord, SampledRecord, Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.studies import study
from lakewright.policy.models import save_checkpoint
from tests.support.processes.commands import assert_refused, lakewright
from tests.support.samples.tiny_runs import run_loop
from tests.support.samples.tiny_sweep import TOML, expected

OLD = Path(__file__).parent / "old_folders"
STUDY = Path(__file__).parents[2] / "studies" / "study.toml"
RECORDS = {"run": "config.json", "study": "study.json", "sweep": "manifest.json", "evaluation": "job.json"}


@pytest.fixture
def old(tmp_path) -> Path:
    """A copy of the old folders, and the specs that belong to them."""
    shutil.copytree(OLD, tmp_path / "old")
    (tmp_path / "old" / "sweep.toml").write_text(TOML)
    return tmp_path / "old"


def files(folder: Path) -> dict[str, bytes]:
    """Names and bytes of all files below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def commands(old: Path) -> dict[str, tuple]:
    """The command that continues each folder."""
    return {
        "run": ("run", "--preset", "cpu", "--out", old / "run"),
        "study": ("study", STUDY, "--out", old / "study", "--workers", "1"),
        "sweep": ("sweep", old / "sweep.toml", "--out", old / "sweep", "--workers", "1"),
        "evaluation": (
            *("benchmark", "eval", old / "evaluation" / "boards.jsonl"),
            *("--solver", "prioritized", "--out", old / "evaluation"),
        ),
    }


def test_an_old_run_is_shown_and_belongs_to_its_settings(old, capsys):
    code, table, problems = lakewright(capsys, "report", old / "run")
    assert (code, problems) == (0, [])
    assert [line.split()[:3] for line in table.splitlines() if line.startswith("stage")] == [["stage", "0", "0.0"]]
    code, shown, _ = lakewright(capsys, "engineer", "show", old / "run", "--stage", "0")
    assert code == 0
    assert "<guideline>" not in shown, "the rules have no prompt"
    assert "next stage" in shown
    run, before = RunFolder(old / "run"), files(old / "run")
    run.open(run.settings())
    assert files(old / "run") == before


def test_every_record_of_an_old_run_is_read(old):
    run = RunFolder(old / "run")
    stage, space = run.stage(0), lake_space()
    start = make_trainee(run.settings()).start
    assert stage.design() == start
    assert read_record(stage.validation, Validation).outcomes.keys() == start.strata.keys()
    assert read_record(stage.sampled, SampledRecord).statistics.keys() <= start.strata.keys()
    decision, trial = read_record(stage.proposal, DecisionRecord), read_record(stage.trial, Trial)
    assert edit_design(start, decision.proposal.delta, space).keys() == start.strata.keys()
    assert [tried.design for tried in trial.candidates] == [start, decision.verdict.design]
    assert stage.read_next().design == trial.candidates[trial.chosen].design
    assert stage.read_evidence().design == start
    assert sum(group.completions for _, group in read_rollouts(stage)) == 8
    assert describe_stage(run, 0, space)[-1].startswith("next")
    assert [chapter.name for chapter in read_chapters(run)] == ["warm-up", "stage 0"]


def test_an_old_run_whose_weights_are_there_goes_on_to_its_end(old):
    run = RunFolder(old / "run")
    settings, before = run.settings(), files(old / "run")
    trainee = make_trainee(settings)
    for stage in (run.warmup, run.stage(0)):
        save_checkpoint(stage.checkpoint, *trainee.build_model())
    run_loop(settings, run)
    assert [stage.folder.name for stage in run.finished_stages()] == ["stage_00", "stage_01"]
    after = files(old / "run")
    assert {name: after[name] for name in before} == before
    assert run.stage(1).design() == run.stage(0).next_design()
    assert [earlier.design for earlier in run.stage(1).read_evidence().history] == [run.stage(0).design()]


def test_an_old_run_or_study_with_other_settings_than_today_is_refused_by_name(old, capsys):
    before = files(old)
    remedy = "give the same input and options to continue, or choose another folder"
    told = ("config.json: holds another run: settings.", " there and ", "; to continue that run add ")
    assert_refused(capsys, commands(old)["run"], *told)
    assert_refused(capsys, commands(old)["study"], "study.json: holds another study: ", " there and ", remedy)
    assert {name: data for name, data in files(old).items() if ".lock" not in name} == before, "nothing is lost"


def test_an_old_study_belongs_to_its_plan(old):
    folder, before = study.StudyFolder(old / "study"), files(old / "study")
    folder.open(study.CLAIM.read_work(old / "study"))
    assert files(old / "study") == before


@pytest.mark.deep
def test_an_old_sweep_resumes_with_the_same_boards_and_keeps_its_shards(old, capsys, monkeypatch):
    manifest = sweep_folder.CLAIM.read_work(old / "sweep")
    monkeypatch.setattr(sweep_folder, "versions", lambda: manifest.versions)  # as if the libraries were those of then
    before = files(old / "sweep")
    code, table, _ = lakewright(capsys, "sweep", "status", old / "sweep")
    assert (code, "1 of 6" in table) == (0, True)
    assert lakewright(capsys, *commands(old)["sweep"])[0] == 0
    after = files(old / "sweep")
    assert {name: after[name] for name in before} == before
    made = {name: pq.read_table(old / "sweep" / "shards" / name) for name in expected()}
    (kept,) = (name for name in before if name.endswith(".parquet"))
    assert len(made) == 6
    assert made[Path(kept).name].equals(pq.read_table(OLD / "sweep" / kept))


def test_an_old_evaluation_is_summed_up_without_asking_again(old, capsys):
    answers = (old / "evaluation" / "answers.jsonl").read_bytes()
    code, out, problems = lakewright(capsys, *commands(old)["evaluation"], "--json")
    assert (code, problems) == (0, [])
    found = json.loads(out)["pooled"]["outcomes"]
    assert (found["boards"], found["valid"]) == (6, 5)
    assert (old / "evaluation" / "answers.jsonl").read_bytes() == answers


@pytest.mark.parametrize("kind", RECORDS)
def test_a_folder_of_another_format_is_refused_in_one_line(old, capsys, kind):
    path = old / kind / RECORDS[kind]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 0}))
    before = files(old)
    remedy = "use the version that wrote it, or another folder"
    assert_refused(capsys, commands(old)[kind], f"{path}: format is 0, this version reads", remedy)
    assert {name: data for name, data in files(old).items() if ".lock" not in name} == before, "nothing is lost"
