"""Answers to held-out problems in a folder: each counts for the model, and one of each problem is compared."""

import msgspec
import pytest

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.samples.engineer_folders import begin_engineer, record_some, state_of


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", teacher="fixed", held_out=40)


def validate(folder, right, problems=slice(None), count=1, name="", first=0):
    """Records `count` answers to held-out problems, all right or all wrong."""
    recorder = OutcomeRecorder(folder.path, folder.environment)
    for problem in folder.held_out()[problems]:
        answers = [problem.answer if right else "?"] * count
        recorder.record(problem, answers, split="held_out", group=name and f"{name} {problem.key}", first=first)


def read_tested(folder):
    """What the model is fitted to of the last round: answers, groups, and how many of these are valid."""
    seen = [one for one in folder.files.read_newest().state["tested"] if not one["age"]]
    return [sum(one[name] for one in seen) for name in ("answers", "groups", "success")]


def test_a_fall_is_noticed_though_next_runs_during_the_validation(folder):
    validate(folder, right=True)
    folder.next()
    first = ProblemSource(folder.path).take(4)
    record_some(folder, first)
    validate(folder, right=False, problems=slice(15))
    assert not folder.next().rolled_back, "the others are not known yet"
    assert len(folder.files.read_newest().waiting) == 15
    assert not folder.next().new
    folder = EngineerFolder(folder.path)
    validate(folder, right=False, problems=slice(15, None))
    assert folder.next().rolled_back
    assert (folder.files.read_newest().waiting, read_tested(folder)[0]) == ({}, 25), "each answer counts once"


def test_rounds_without_a_validation_do_not_hide_a_fall_and_the_design_before_it_is_back(tmp_path):
    folder = begin_engineer(tmp_path / "e", held_out=40)
    source = ProblemSource(folder.path)
    for right in (True, True, None, None, False):
        record_some(folder, source.take(8))
        if right is not None:
            validate(folder, right=right)
        report = folder.next()
    versions = [folder.files.read_version(number).design for number in range(6)]
    assert report.rolled_back
    assert versions[5] == versions[1], "of the last validation before the fall, which version 1 had trained for"
    assert versions[4] != versions[1]


def test_all_answers_to_a_held_out_problem_are_a_group_and_the_first_is_compared(folder):
    validate(folder, right=True, count=7, name="a")
    validate(folder, right=False, name="a", first=7)
    folder.next()
    answers, groups, success = read_tested(folder)
    assert (answers, groups, success) == (320, 40, pytest.approx(35))
    assert folder.files.read_newest().state["standing_valid"] == "1" * 40
    validate(folder, right=False, count=2, name="b", first=1)  # as the first of processes that end in another order
    validate(folder, right=True, name="b")
    assert not folder.next().rolled_back
    assert folder.files.read_newest().state["standing_valid"] == "1" * 40


def test_answers_to_problems_that_are_not_held_out_here_count_though_all_others_were_answered(folder):
    validate(folder, right=True)
    recorder = OutcomeRecorder(folder.path, folder.environment)
    for problem in folder.held_out()[:20]:
        recorder.record(msgspec.structs.replace(problem, key=f"other {problem.key}"), ["?"], split="held_out")
    report = folder.next()
    assert "20 held-out answers to problems that are not held out here" in report.complaint
    assert read_tested(folder) == [60, 60, 40]
    assert len(folder.files.read_newest().state["standing_valid"]) == 40


def test_a_kill_while_the_untrained_policy_is_recorded_changes_nothing(tmp_path, monkeypatch):
    def roll_out(problems, samples, turn):
        texts = [[problem.answer if place % 3 else "?"] * samples for place, problem in enumerate(problems)]
        return environment.groups(problems, texts), 10 * len(problems)

    paths = [tmp_path / name for name in ("whole", "killed")]
    for path in paths:
        folder = begin_engineer(path, teacher="difficulty", held_out=40)
        environment = folder.environment
        if path.name == "killed":
            record, left = OutcomeRecorder.record, iter(range(15))

            def record_some_and_end(recorder, *values, left=left, record=record, **options):
                if next(left, None) is None:
                    raise KeyboardInterrupt
                return record(recorder, *values, **options)

            with monkeypatch.context() as patch:
                patch.setattr(OutcomeRecorder, "record", record_some_and_end)
                with pytest.raises(KeyboardInterrupt):
                    folder.next(roll_out, step=0)
            folder = EngineerFolder(path)
        report = folder.next(roll_out, step=0)
        assert (report.counts.held_out, report.complaint) == (40, "")
    assert state_of(paths[0]) == state_of(paths[1])
