"""Trainers that use a folder carelessly: nobody's training ends for it, and what has no effect is said."""

import json
import multiprocessing
import pickle
import threading
import time
import warnings

import numpy as np
import pytest
from torch.utils.data import DataLoader

from lakewright.core_jax.support import locked
from lakewright.experiments.trainers.exchange import draw_lines, record_lines
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.trl import EngineerTasks
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, guess, record_some


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e")


def test_a_trainer_waits_for_another_process_that_decides(folder, caplog):
    record_some(folder, ProblemSource(folder.path).take(4))
    begun = threading.Event()

    def decide_elsewhere():
        with locked(folder.path):
            begun.set()
            time.sleep(0.2)

    other = threading.Thread(target=decide_elsewhere)
    other.start()
    begun.wait()
    with refused("another process decides here"):
        folder.next()
    assert folder.next(step=20).version == 1
    other.join()
    assert "another process decides here" in caplog.text, "so that a trainer that stands still has said why"


def test_rows_are_made_in_workers_that_are_no_copies_of_the_trainer(folder):
    """As by default on macOS, and from Python 3.14 on."""
    tasks = EngineerTasks(folder.path)
    tasks.policy = threading.Lock()  # which is no more pickled than a trainer
    rows = pickle.loads(pickle.dumps(tasks.train_dataset))
    assert rows[:2]["prompt"] == [problem.prompt for problem in tasks.source.problems([0, 1])]


@pytest.mark.deep
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_workers_of_every_kind_make_rows(folder, method):
    tasks = EngineerTasks(folder.path)
    context = multiprocessing.get_context(method)
    loader = DataLoader(tasks.train_dataset, 2, num_workers=1, multiprocessing_context=context, collate_fn=list)
    first = next(iter(loader))
    assert [row["prompt"] for row in first] == [problem.prompt for problem in tasks.source.problems([0, 1])]


def record_places(folder, places, step):
    source, recorder = ProblemSource(folder.path), OutcomeRecorder(folder.path)
    for problem in source.problems(places):
        recorder.record(problem, guess(problem), group=f"{problem.key} step {step}")


def test_a_trainer_that_never_takes_up_a_new_design_is_told(folder):
    ProblemSource(folder.path).problems(range(8))  # as a data set does that is made whole before training
    complaints = []
    for step in range(1, 5):
        record_places(folder, range(8), step)
        report = folder.next(step=step)
        complaints.append(report.complaint)
        assert report.outdated == bool(report.complaint)
    assert complaints[:2] == ["", ""], "one version late is usual, because trainers fetch ahead"
    assert "of version 1, which was there before, but all 32 are to problems of version 0;" in complaints[2]
    assert "of version 2, which was there before" in complaints[3]
    record_places(folder, range(8, 16), 5)
    assert not folder.next(step=5).complaint


def test_a_design_that_stays_is_taken_up_by_the_next_decision(tmp_path):
    folder = begin_engineer(tmp_path / "fixed", teacher="fixed")
    for step in range(1, 4):
        record_places(folder, range(8), step)
        assert not folder.next(step=step).complaint


def test_trl_is_told_once_of_rows_that_were_all_made_before(folder, tmp_path):
    tasks = EngineerTasks(folder.path, every=1)
    tasks.source.problems(range(8))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(1, 6):
            record_places(folder, range(8), step)
            tasks._silent = False
            tasks.decide(step)
    (line,) = [str(one.message) for one in told]
    assert "all 32 are to problems of version 0" in line


def test_places_and_seeds_may_be_numbers_of_numpy(folder):
    source = ProblemSource(folder.path, np.int64(3))
    assert source.problems(np.arange(4)[::-1]) == ProblemSource(folder.path, 3).problems([3, 2, 1, 0])
    assert (folder.path / "pins-3.jsonl").exists()
    for seed in (None, "../x", 1.5):
        with refused("seed is", repr(seed)):
            ProblemSource(folder.path, seed)


@pytest.mark.parametrize("group", [3, "\ud800", b"a"])
def test_a_group_that_no_line_can_hold_is_refused_at_once(folder, group):
    recorder, (problem,) = OutcomeRecorder(folder.path), ProblemSource(folder.path).take(1)
    with refused("group is", "give a text"):
        recorder.record(problem, ["1"], group=group)
    assert folder.status().pending == 0


def test_a_missing_reward_is_refused_and_not_replaced_by_the_verdict(folder):
    recorder, (problem,) = OutcomeRecorder(folder.path), ProblemSource(folder.path).take(1)
    with refused("outcome 1 is missing"):
        recorder.record(problem, ["1", "2"], [0.5, None])
    assert folder.status().pending == 0


def test_answers_to_the_problems_of_another_folder_are_refused(folder, tmp_path):
    other = begin_engineer(tmp_path / "other", held_out=2)
    begin_engineer(
        tmp_path / "third",
        held_out=2,
        design=other.space.uniform().replace({1: {"share": 1.0, "terms": 4, "carry": 0.9}}),
    )
    for held_out in (False, True):
        lines = draw_lines(other.path, 2, held_out=held_out, first=7)
        draw_lines(tmp_path / "third", 2, first=7)
        answers = [{"place": line.place, "key": line.key, "split": line.split, "answers": ["1"]} for line in lines]
        (tmp_path / "answers").write_text("\n".join(map(json.dumps, answers)))
        with refused("answers:1: key is", "record answers in the folder that drew the problems"):
            record_lines(tmp_path / "third", tmp_path / "answers")
        assert len(record_lines(other.path, tmp_path / "answers")) == 2


def test_an_illegal_edit_costs_no_training(folder):
    tasks, path = EngineerTasks(folder.path, every=1), folder.path / "design.json"
    record_places(folder, range(8), 1)
    right = path.read_text()
    path.write_text(right.replace("0.25", "0.35"))
    tasks._silent = False
    with pytest.warns(UserWarning, match="step 1: nothing was decided: .*design.json: .*sum to"):
        tasks.decide(1)
    assert folder.files.list_versions() == [0]
    path.write_text(right)
    tasks.decide(2)
    assert [report.counts.answers for report in tasks.decided] == [32], "all that were recorded meanwhile"
