"""A part of `EngineerTasks` that a script forgets to give to TRL, or gives to a second training, is said in a line."""

import warnings
from types import SimpleNamespace

import pytest
from transformers import TrainerControl, TrainerState

from lakewright.experiments.trainers.trl import EngineerTasks
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, record_some

ONE = {"completions": ["1"], "completion_ids": [[1]]}


def begin_training(tasks, step=0, **arguments):
    """What the callbacks do when a trainer begins; returns the lines of warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        state = TrainerState(global_step=step)
        for callback in tasks.callbacks:
            callback.on_train_begin(SimpleNamespace(num_generations=1, **arguments), state, TrainerControl())
    return [str(one.message) for one in told]


def test_a_second_training_in_a_folder_is_told_that_it_decides_nothing(tmp_path):
    folder = begin_engineer(tmp_path / "e")
    assert begin_training(EngineerTasks(folder.path)) == []
    record_some(folder, EngineerTasks(folder.path).source.take(4))
    folder.next(step=20)
    (line,) = begin_training(EngineerTasks(folder.path))
    assert line.startswith(f"{folder.path}: has decided up to step 20, but this training begins at step 0")
    assert "choose another folder, or resume" in line
    assert begin_training(EngineerTasks(folder.path), step=10) == [], "resumed"


def test_a_trainer_without_the_callbacks_is_refused_at_its_first_reward(tmp_path):
    tasks = EngineerTasks(begin_engineer(tmp_path / "e", held_out=1).path)
    with refused("callbacks=tasks.callbacks"):
        tasks.judge_answers(**ONE, place=[0], split=["train"], trainer_state=TrainerState())
    assert tasks.judge_answers(**ONE, place=[0], split=["held_out"], trainer_state=TrainerState()) == [0.0], "evaluate"
    begin_training(tasks)
    assert len(tasks.judge_answers(**ONE, place=[0], split=["train"], trainer_state=TrainerState())) == 1


def test_a_trainer_without_the_reward_is_told_once_at_the_first_decision(tmp_path):
    tasks = EngineerTasks(begin_engineer(tmp_path / "e").path, every=1)
    begin_training(tasks)
    with pytest.warns(UserWarning, match="reward_funcs=tasks.reward_funcs"):
        tasks.decide(1)
    with warnings.catch_warnings(action="error"):
        tasks.decide(2)


def test_a_data_set_of_ones_own_is_refused(tmp_path):
    tasks = EngineerTasks(begin_engineer(tmp_path / "e").path)
    begin_training(tasks)
    with refused("place", "split", "tasks.train_dataset"):
        tasks.judge_answers(**ONE, trainer_state=TrainerState())


@pytest.mark.parametrize("changes", [{"eval_strategy": "steps"}, {"attached": True}, {"held_out": 0}, {}], ids=str)
def test_held_out_problems_that_nobody_answers_are_said(tmp_path, changes):
    tasks = EngineerTasks(begin_engineer(tmp_path / "e", held_out=changes.get("held_out", 3)).path)
    if "attached" in changes:
        tasks.policy, tasks.decide = object(), lambda step: None
    lines = begin_training(tasks, eval_strategy=changes.get("eval_strategy", "no"))
    assert len(lines) == (not changes)
    if lines:
        assert "3 held-out problems" in lines[0]
        assert "tasks.attach(trainer)" in lines[0]


def test_a_training_that_had_begun_before_its_engineer_begins_with_the_held_out_answers(tmp_path):
    tasks, decided = EngineerTasks(begin_engineer(tmp_path / "e", held_out=3).path), []
    tasks.policy, tasks.decide = object(), decided.append
    begin_training(tasks, step=500)
    assert decided == [500]
    record_some(tasks.folder, tasks.source.take(4))
    begin_training(tasks, step=510)
    assert decided == [500], "resumed"


def test_a_data_set_smaller_than_a_batch_is_refused_because_trl_would_train_no_step(tmp_path):
    tasks = EngineerTasks(begin_engineer(tmp_path / "e").path, places=3)
    with refused("places is 3", "4 problems"):
        begin_training(tasks, generation_batch_size=4)
    assert begin_training(tasks, generation_batch_size=3) == []
