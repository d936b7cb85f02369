"""How far a run is, how fast it goes and what is left, read from the names and times of its files alone."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from lakewright.experiments.jobs.resumable.journal import line_log
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.viewer.catalogue.run_progress import RunProgress, progress_of
from lakewright.policy.training import GrpoSettings, WarmupSettings
from tests.support.samples.finished_run import begin, finish, redesign, validate

SECONDS = 100.0  # that a training has gone on


def trained(stage: Stage, steps: int, **figures: float) -> None:
    """A log that has grown for SECONDS, its last line yet without its end."""
    stage.folder.mkdir(exist_ok=True)
    log = stage.train_log.with_name(f".{stage.train_log.name}.part")
    lines = (msgspec.json.encode({"step": step, **figures}) + b"\n" for step in range(steps))
    log.write_bytes(b"".join(lines) + b'{"step"')
    now = time.time()
    os.utime(log, (now, now))
    os.utime(stage.folder, (now - SECONDS, now - SECONDS))


def progress(run: RunFolder) -> RunProgress:
    return progress_of(run, run.settings())


def after_warmup(path: Path, **settings: object) -> RunFolder:
    run = begin(path, **settings)
    validate(run.warmup, 8)
    return run


def test_steps_give_the_rate_and_what_is_left_of_a_training(tmp_path):
    run = begin(tmp_path, warmup=WarmupSettings(steps=200))
    trained(run.warmup, 50)
    found = progress(run)
    assert found.now
    assert found.now.pace
    assert found.now.doing == "training, step 50 of 200"
    assert found.now.pace.steps_per_second == pytest.approx(0.5, rel=0.01)
    assert found.now.pace.seconds_left == pytest.approx(300, rel=0.01)
    assert found.now.pace.tokens_per_second is None
    assert found.seconds_left is None, "nothing tells yet how long a stage takes"


def test_a_training_that_was_killed_and_begun_again_is_timed_from_its_new_beginning(tmp_path):
    run = begin(tmp_path, warmup=WarmupSettings(steps=200))
    trained(run.warmup, 50)
    with line_log(run.warmup.train_log) as log:
        for step in range(20):
            log({"step": step})
        now = progress(run).now
        assert now
        assert now.pace
        assert now.pace.done.steps == 20
        assert now.pace.done.seconds < SECONDS / 2


def test_minutes_that_end_a_training_earlier_than_its_steps_count(tmp_path):
    run = begin(tmp_path, warmup=WarmupSettings(steps=1_000_000, minutes=5))
    trained(run.warmup, 50)
    now = progress(run).now
    assert now
    assert now.pace
    assert now.doing == "training, step 50, 1.7 of 5.0 min"
    assert now.pace.seconds_left == pytest.approx(200, rel=0.01)


def test_a_budget_of_tokens_that_ends_a_stage_earlier_counts(tmp_path):
    run = after_warmup(tmp_path, budget=1000, grpo=GrpoSettings(steps=1000))
    trained(run.stage(0), 10, **{"sampled/tokens": 25.0})
    now = progress(run).now
    assert now
    assert now.pace
    assert now.pace.tokens_per_second == pytest.approx(2.5, rel=0.01)
    assert now.pace.seconds_left == pytest.approx(300, rel=0.01)


def test_stages_to_come_are_thought_to_take_as_long_as_those_that_are_finished(tmp_path):
    run = after_warmup(tmp_path, stages=4, grpo=GrpoSettings(steps=20))
    redesign(run.stage(0))
    validate(run.stage(0), 16)  # which took 90 seconds
    trained(run.stage(1), 10)
    assert progress(run).seconds_left == pytest.approx(100 + 2 * 90, rel=0.01)


def test_a_run_whose_budget_is_spent_is_finished(tmp_path):
    run = finish(tmp_path, stages=3, budget=100)
    found = progress(run)
    assert found.state == "finished"
    assert found.stages[-1].doing == "not reached: the budget is spent"


def test_a_run_that_says_nothing_for_long_runs_while_a_process_holds_it(tmp_path):
    run = begin(tmp_path)
    long_ago = time.time() - 3600
    for path in (*tmp_path.iterdir(), tmp_path):
        os.utime(path, (long_ago, long_ago))
    assert progress(run).state == "stopped"
    with run.locked():
        assert progress(run).state == "running"
    assert progress(run).state == "stopped"
