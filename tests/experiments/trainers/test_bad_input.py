"""What users do wrong with a folder is one line that says what to do, and nothing that was recorded is lost."""

import json
import shutil

import msgspec
import pytest

from lakewright.engineer import Problem
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, record_some


@pytest.fixture
def folder(tmp_path):
    """A folder with a decision, and outcomes that are not read yet."""
    folder = begin_engineer(tmp_path / "e", held_out=10)
    record_some(folder, ProblemSource(folder.path).take(4))
    folder.next()
    record_some(folder, ProblemSource(folder.path).take(4))
    return folder


def change_version(folder: EngineerFolder, change) -> None:
    """Changes the newest version as a program would that knows nothing of digests."""
    path = folder.files.version_path(folder.files.newest())
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    (path.parent / "SHA256SUMS").unlink()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda raw: raw["state"].update(format=99), ["state: format", 99, "version"]),
        (lambda raw: raw.update(spirit=1), ["'spirit'"]),
        (lambda raw: raw.pop("design"), ["'design'", "missing"]),
    ],
)
def test_a_journal_of_another_version_is_a_line_with_its_file(folder, change, problem):
    copy = shutil.copytree(folder.path, folder.path.parent / "copy")
    change_version(folder, change)
    with refused("versions/0001.json", *problem):
        folder.next()
    assert (copy / "outcomes.jsonl").read_bytes() == folder.files.outcomes_path.read_bytes()
    shutil.copyfile(copy / "versions" / "0001.json", folder.files.version_path(1))
    assert folder.next().counts.answers == 16, "with the right file the answers count"


def test_what_changed_in_a_design_space_is_said(folder):
    path = folder.path / "engineer.json"
    raw = json.loads(path.read_text())
    del raw["parts"]["stratum 4"]
    raw["parts"] |= {"stratum long": "number 4", "knob terms": "2 to 9 whole"}
    path.write_text(json.dumps(raw | {"space": "another"}))
    (folder.path / "SHA256SUMS").unlink()
    with refused(
        "engineer.json", "stratum long is gone, stratum 4 is new, knob terms was 2 to 9 whole, now 2 to 4 whole"
    ):
        EngineerFolder(folder.path)


def test_an_environment_itself_is_refused_because_other_processes_need_its_name(folder, tmp_path):
    with refused("environment", "Addition", "FILE.py:Class"):
        EngineerFolder.begin(tmp_path / "other", folder.environment)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("ask", [EngineerFolder.next, EngineerFolder.status])
def test_a_state_of_another_form_is_reported_before_there_are_new_outcomes(folder, ask):
    folder.next()
    change_version(folder, lambda raw: raw["state"].update(format=99))
    with refused("versions/0002.json", "state: format", 99, "use the version that wrote it"):
        ask(folder)


def test_held_out_answers_to_unknown_problems_are_a_line_and_count_by_their_cells(folder):
    recorder = OutcomeRecorder(folder.path, folder.environment)
    strange = ProblemSource(folder.path, seed=5).take(3)
    for problem in strange:
        recorder.record(problem, ["?"], split="held_out")
    report = folder.next()
    said = f"3 held-out answers to problems that are not held out here (the first has the key '{strange[0].key}')"
    assert said in report.complaint
    assert report.counts.held_out == 3
    for problem in folder.held_out():
        recorder.record(problem, [problem.answer], split="held_out")
    assert not folder.next().complaint


def test_answers_before_begin_are_a_line_and_those_in_the_folder_count_once_it_begins(folder, tmp_path):
    for use in (OutcomeRecorder, ProblemSource, EngineerFolder):
        with refused("early: ", "lakewright engineer begin"):
            use(tmp_path / "early")
    (tmp_path / "early").mkdir()
    first = folder.files.outcomes_path.read_text().splitlines(keepends=True)[:16]
    (tmp_path / "early" / "outcomes.jsonl").write_text("".join(first))
    assert begin_engineer(tmp_path / "early").next().counts.answers == 16


@pytest.mark.parametrize("step", ["a", -1, 1.5, True])
def test_a_step_that_is_no_number_is_a_line(folder, step):
    with refused("step", repr(step), "whole number"):
        folder.next(step=step)
    assert folder.status().pending == 16


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"cell": Problem("").cell}, ["record: problem", "('', (), ())"]), ({"version": 99}, ["version 99", "newest", 1])],
)
def test_a_problem_of_another_space_or_a_version_to_come_is_not_recorded(folder, changes, told):
    source, recorder = ProblemSource(folder.path), OutcomeRecorder(folder.path)
    before = folder.files.outcomes_path.read_bytes()
    with refused(*told):
        recorder.record(msgspec.structs.replace(source[0], **changes), ["1"])
    assert folder.files.outcomes_path.read_bytes() == before
    folder.next()
    recorder.record(source[90], ["1"])
    assert folder.next().counts.answers == 1, "of a version that the recorder did not know when it was opened"


@pytest.mark.parametrize("count", [-2, "3", 1.5])
def test_what_cannot_be_taken_is_a_line_and_no_place_is_given_twice(folder, count):
    source = ProblemSource(folder.path)
    first = source.take(4)
    with refused("take: count", repr(count)):
        source.take(count)
    assert (source.position, source.take(1)) == (4, [source[4]])
    assert source[4] not in first


def test_settings_of_a_folder_may_be_a_table(tmp_path):
    folder = begin_engineer(tmp_path / "e", settings={"trial.boards": 50, "rollback": {"level": 0.01}}, held_out=4)
    found = folder.setup.settings
    assert (found.trial.boards, found.rollback.level, found.rollback.weights) == (50, 0.01, False)
    for settings, told in (({"trial.board": 50}, ["settings: trial", "'board'"]), (3, ["settings is 3", "table"])):
        with refused(*told):
            begin_engineer(tmp_path / "other", settings=settings)
