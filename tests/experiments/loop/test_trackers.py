"""The closed loop in trackers: what they are given, each stage once, and read back by their own libraries."""

import json
import os

import numpy as np
import pytest

from lakewright.engineer.design import Design
from lakewright.engineer.steps import Next
from lakewright.engineer.tally import Tally
from lakewright.experiments.cli import main
from lakewright.experiments.loop.closed_loop import run
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Done, Validation, write_record
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.trackers import TRACKERS, Publisher, points_of, prepare_tracker
from lakewright.experiments.loop.training.stage_training import REPORTS, reporting_into
from tests.support.processes.commands import HOUSE
from tests.support.refusals import refused
from tests.support.samples.finished_run import begin, finish, redesign, validate
from tests.support.samples.tiny_runs import finished
from tests.support.tools.own_environments import own_environment, run_there

VERSIONS = ("tensorboard==2.21.0", "wandb==0.31.0", "trackio==0.43.0")


class Notebook:
    """A tracker that keeps what it is given; `breaks_at` is the step at which it fails."""

    kept: list = []  # noqa: RUF012, of all of them
    breaks_at: int | None = None

    def __init__(self, folder) -> None:
        self.closed = False

    def log(self, point) -> None:
        if point.step == self.breaks_at:
            raise ConnectionError("no route to the tracker")
        self.kept.append(point)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def notebook(monkeypatch):
    """The points that were published to the tracker `json`, a name that can always be imported."""
    monkeypatch.setattr(Notebook, "kept", [])
    monkeypatch.setitem(TRACKERS, "json", Notebook)
    return Notebook


def all_points(folder) -> list:
    return [point for chapter in range(3) for point in points_of(folder, chapter)]


def test_steps_rise_over_warm_up_and_stages_and_each_figure_is_a_number(tmp_path):
    points = all_points(finish(tmp_path))
    assert [point.step for point in points] == [1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9]
    for point in points:
        assert all(type(value) in (int, float) for value in point.figures.values()), point
    assert points[0].figures["warmup/reward"] == 0.1
    assert points[4].figures["train/reward"] == 0.1
    assert "train/step" not in points[4].figures


def test_a_stage_tells_what_the_engineer_changed_the_trial_found_and_the_policy_can_do(tmp_path):
    points = all_points(finish(tmp_path))
    warmed, first, second = points[3].figures, points[7].figures, points[11].figures
    assert (warmed["eval/valid/3"], first["eval/valid/3"], second["eval/valid/3"]) == (8 / 40, 16 / 40, 32 / 40)
    assert first["eval/valid"] == (16 + 8) / 80
    assert "engineer/hole/3" not in warmed
    assert (first["engineer/hole/3"], first["engineer/data/4"]) == (0.2, 0.6)
    assert (first["trial/score"], first["trial/accepted"], first["loop/taken_back"]) == (0.2, 1, 0)
    (picture,) = points[7].pictures.values()
    assert list(points[7].pictures) == ["boards/3"]
    assert (picture.shape, picture.dtype) == ((72, 72, 3), np.uint8)


def test_a_stage_tells_how_the_engineer_was_trained_and_how_well_the_difficulty_model_foresaw_it():
    run = finished("self_trained")
    first, second = ([*points_of(run, chapter)][-1].figures for chapter in (1, 2))
    groups = run.stage(0).engineer_figures()
    assert (first["train/engineer/reward_before"], first["train/engineer/reward"]) == (
        groups[0]["reward"],
        groups[-1]["reward"],
    )
    assert 0 < first["train/engineer/distinct"] <= 1
    assert 0 <= first["train/engineer/refused"] < 1
    assert second["difficulty/brier"] >= 0
    assert "difficulty/brier" not in first, "there was no forecast of the first stage"


def test_a_run_of_another_environment_has_its_own_names_and_no_boards(tmp_path):
    folder, design = RunFolder(tmp_path), Design({2: {"share": 1.0, "terms": 3, "carry": 0.25}})
    folder.open(RunSettings(environment="docs/examples/addition.py:Addition", codec="bytes", stages=1))
    for stage, valid in ((folder.warmup, 3), (folder.stage(0), 4)):
        stage.folder.mkdir()
        tally = Tally(8, valid, grades={"short": 1}, traits={"carry": Tally(4, 1)})
        write_record(stage.validation, Validation({2: tally, "words": Tally(2, 0)}, [], {}, ""), lake=False)
        write_record(stage.done, Done(1.0, {}))
    write_record(folder.stage(0).next, Next(design, "proposal", []), lake=False)
    *_, last = points_of(folder, 1)
    assert last.figures == {
        "eval/valid/2": 0.5,
        "eval/short/2": 0.125,
        "eval/carry/2": 0.25,
        "eval/valid/words": 0.0,
        "eval/valid": 0.4,
        "eval/short": 0.1,
        "eval/carry": 0.25,
        "engineer/share/2": 1.0,
        "engineer/terms/2": 3.0,
        "engineer/carry/2": 0.25,
        "loop/taken_back": 0.0,
        "loop/seconds": 1.0,
    }
    assert last.pictures == {}


def test_a_run_that_goes_on_publishes_each_stage_once(tmp_path, notebook):
    folder = begin(tmp_path)
    validate(folder.warmup, 8)
    publisher = Publisher(folder, ["json"])
    assert publisher.publish() == {"json": 1}
    redesign(folder.stage(0))
    validate(folder.stage(0), 16)
    assert publisher.publish() == {"json": 2}
    redesign(folder.stage(1))
    assert Publisher(folder, ["json"]).publish() == {"json": 2}, "a stage that is not finished is published"
    validate(folder.stage(1), 32)
    assert Publisher(folder, ["json"]).publish() == {"json": 3}
    assert [point.step for point in notebook.kept] == [point.step for point in all_points(folder)]


def test_the_loop_publishes_what_is_finished_when_it_is_resumed(tmp_path, notebook):
    folder = finish(tmp_path)
    run(folder.settings(), folder, Publisher(folder, ["json"]).publish)
    assert [point.step for point in notebook.kept] == [point.step for point in all_points(folder)]


def test_what_a_tracker_did_not_take_is_published_again(tmp_path, notebook, monkeypatch):
    folder = finish(tmp_path)
    monkeypatch.setattr(notebook, "breaks_at", 5)
    with pytest.raises(ConnectionError):
        Publisher(folder, ["json"]).publish()
    monkeypatch.setattr(notebook, "breaks_at", None)
    notebook.kept.clear()
    assert Publisher(folder, ["json"]).publish() == {"json": 3}
    assert [point.step for point in notebook.kept] == [point.step for point in all_points(folder)]


def test_the_command_publishes_and_says_how_much(tmp_path, notebook, capsys, monkeypatch):
    finish(tmp_path)
    monkeypatch.setitem(TRACKERS, "tensorboard", Notebook)
    monkeypatch.setattr("lakewright.experiments.loop.trackers.prepare_tracker", lambda name, folder: None)
    assert main(["track", str(tmp_path), "--to", "tensorboard", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"tensorboard": 3}


def test_an_unknown_tracker_a_missing_one_and_a_folder_without_a_run_are_refused(tmp_path, monkeypatch, capsys):
    with refused("tracker 'diary'"):
        prepare_tracker("diary", RunFolder(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused("tracker wandb", "pip install wandb"):
        prepare_tracker("wandb", RunFolder(tmp_path))
    assert main(["track", str(tmp_path), "--to", "wandb"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_reports_of_each_stage_go_into_its_folder_or_where_the_user_has_said(tmp_path, monkeypatch):
    monkeypatch.delenv(REPORTS, raising=False)
    for stage in ("stage_00", "stage_01"):
        with reporting_into(tmp_path / stage):
            assert os.environ[REPORTS] == str(tmp_path / stage)
    assert REPORTS not in os.environ
    monkeypatch.setenv(REPORTS, "mine")
    with reporting_into(tmp_path):
        assert os.environ[REPORTS] == "mine"
    assert os.environ[REPORTS] == "mine"


@pytest.mark.deep
def test_tensorboard_has_a_folder_for_each_stage(tmp_path):
    python = own_environment("trackers", *VERSIONS)
    few = "stages=2 warmup.steps=1 grpo.steps=1 grpo.prompts=2 grpo.group=2 validation.boards=1 trial.boards=2"
    few += " warmup.boards=64 warmup.batch=4 engineer.asked_first=false grpo.host.report_to=tensorboard"
    command = ("run", "--preset", "cpu", "--teacher", "fixed", "--out", str(tmp_path / "run"), *few.split())
    run_there(python, "-m", "lakewright.experiments.cli", *command)
    assert {file.parents[1].name for file in tmp_path.glob("run/*/tensorboard/events*")} == {"stage_00", "stage_01"}


@pytest.mark.deep
def test_tensorboard_wandb_and_trackio_read_back_what_they_were_given(tmp_path):
    python = own_environment("trackers", *VERSIONS)
    folder = finish(tmp_path / "seven")
    offline = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "TRACKIO_DIR": str(tmp_path / "trackio")}
    trackers = [word for name in TRACKERS for word in ("--to", name)]
    last = folder.stage(1).done
    unfinished = last.rename(tmp_path / "done.json")
    for _ in range(2):  # as a run does: after each stage
        run_there(python, "-m", "lakewright.experiments.cli", "track", folder.folder, *trackers, **offline)
        if unfinished.exists():
            unfinished.rename(last)
    expected = [(point.step, point.figures, [*point.pictures]) for point in all_points(folder)]
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    reader = HOUSE / "tests" / "support" / "tools" / "trackers_client.py"
    read = run_there(python, reader, folder.folder, tmp_path / "expected.json", **offline)
    assert read.stdout.endswith("all trackers agree\n")
