"""Trainers that use a folder carelessly: nobody's training ends for it, and what has no effect is said."""

import multiprocessing
import pickle
import threading
import time

import pytest
from torch.utils.data import DataLoader

from lakewright.core_jax.support import locked
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.trl import EngineerTasks
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, record_some


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
