"""Progress of a run without a terminal: a line of each piece of work about once a minute, and none if it is silent."""

import json
import math
from contextlib import ExitStack, contextmanager

import pytest

from lakewright.experiments.jobs.resumable.journal import line_log
from lakewright.experiments.jobs.runtime.progress_bars import print_on_terminal, progress, showing_progress
from lakewright.experiments.jobs.runtime.progress_lines import ProgressLines
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.settings.launch import LaunchSettings
from lakewright.experiments.loop.training import stage_training, warmup
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.policy.training import GrpoSettings, Place, WarmupSettings
from tests.support.samples.text_runs import text_run

STEP = {"reward": 0.5, "valid": 0.5, "sampled/tokens": 10}


class Clock:
    """Seconds that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_a_minute_says_what_how_much_how_fast_and_how_long(capsys):
    clock = Clock()
    bar = ProgressLines("GRPO", 40, "steps", clock=clock)
    for _ in range(30):
        clock.now += 5
        bar.set_postfix(valid="0.48", tokens="105000")
        bar.update()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "  GRPO: 12 of 40 steps, 0.2 a second, valid 0.48, tokens 105000, 2:20 left",
        "  GRPO: 24 of 40 steps, 0.2 a second, valid 0.48, tokens 105000, 1:20 left",
    ]


def test_minutes_end_the_work_where_they_are_nearer():
    clock = Clock()
    bar = ProgressLines("warm-up", 1_000_000, "steps", minutes=240, clock=clock)
    clock.now += 3600
    bar.update(9000)
    assert bar.describe() == "  warm-up: 9000 of 1000000 steps, 2.5 a second, 3:00:00 left"


def test_steps_of_an_earlier_run_count_in_no_rate():
    clock = Clock()
    bar = ProgressLines("GRPO", 60, "steps", clock=clock)
    bar.initial = 20
    bar.update(20)
    clock.now += 10
    bar.update(10)
    assert ", 1 a second, 0:30 left" in bar.describe()


def test_minutes_of_an_earlier_run_are_over():
    clock = Clock()
    bar = ProgressLines("GRPO", 1_000_000, "steps", minutes=240, spent=3600, clock=clock)
    clock.now += 3600
    bar.update(9000)
    assert bar.describe().endswith(", 2:00:00 left")


@pytest.fixture
def resumed(monkeypatch):
    """A training that is resumed after 20 steps and an hour, and the bars that it shows."""
    bars, clock = [], Clock()

    @contextmanager
    def show(what, total, unit, minutes=None, spent=0.0):
        bars.append(ProgressLines(what, total, unit, minutes, spent, clock))
        yield bars[-1]

    for module in (warmup, stage_training):
        place = Place(step=20, seconds=3600, notes=json.dumps({"steps": 20 * [STEP]}))
        monkeypatch.setattr(module, "load_place", lambda file, place=place: place)
        monkeypatch.setattr(module, "progress", show)
    return bars, clock


def test_a_warm_up_that_is_resumed_tells_what_is_left(resumed, monkeypatch, tmp_path):
    bars, clock = resumed

    def learn(model, play, tasks, extra, settings, seed, on_step, *_):
        for step in range(30):
            clock.now += 10 * (step >= 20)
            on_step(step, 0.5)
        return model

    monkeypatch.setattr(warmup, "learn_answers", learn)
    trainee = make_trainee(text_run(warmup=WarmupSettings(steps=60, minutes=600)))
    warmup._learn_answers(trainee, RunFolder(tmp_path).warmup, *trainee.build_model())
    assert bars[-1].describe() == "  warm-up: 30 of 60 steps, 0.1 a second, loss 0.500, 5:00 left"


def test_a_stage_that_is_resumed_tells_what_is_left(resumed, tmp_path):
    bars, clock = resumed
    place, grpo = stage_training.load_place(tmp_path), GrpoSettings(steps=10**6, minutes=62)
    with ExitStack() as opened:
        logger = stage_training._StageLogger(RunFolder(tmp_path).stage(0), dict, place, grpo, math.inf, opened)
        clock.now += 60
        logger.log_step(STEP.copy())
        assert bars[-1].describe().endswith(", reward 0.50, valid 0.50, tokens 210, 1:00 left")


def test_a_launched_stage_that_is_resumed_tells_what_is_left(resumed, monkeypatch, tmp_path):
    bars, clock = resumed
    stage = RunFolder(tmp_path).stage(0)
    stage.folder.mkdir()

    def launch(*given):
        given[-1]()
        with line_log(stage.train_log) as log:
            for step in range(26):
                clock.now += 10 * (step >= 20)
                log(STEP)
            given[-1]()

    monkeypatch.setattr(stage_training, "launch_stage", launch)
    launched = LaunchSettings(processes=1, config="single_gpu")
    trainee = make_trainee(text_run(grpo=GrpoSettings(steps=100, minutes=62), launch=launched))
    stage_training.train_stage(trainee, stage, RunFolder(tmp_path).warmup, 0)
    assert bars[-1].describe().endswith("26 of 100 steps, 0.1 a second, reward 0.50, valid 0.50, tokens 260, 1:00 left")


def test_a_line_is_printed_also_while_nothing_ends(capsys):
    clock = Clock()
    bar = ProgressLines("validation", 40, "boards", clock=clock)
    for _ in range(3):
        clock.now += 30
        bar.update(0)
    assert capsys.readouterr().err.splitlines() == ["  validation: 0 of 40 boards, 0 a second"]


@pytest.mark.parametrize(("form", "shown"), [("bars", ""), ("lines", "stage 1\n"), ("silent", "")])
def test_only_lines_are_printed_into_a_pipe(form, shown, capsys):
    with showing_progress(form):
        print_on_terminal("stage 1")
        with progress("boards", 3, "boards") as bar:
            bar.update(3)
    print_on_terminal("after the block")
    assert capsys.readouterr().err == shown
