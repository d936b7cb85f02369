"""Trainings that the clock ends: killed and resumed, they take as many steps as without the kill."""

import math

import pytest

from lakewright.policy.training import GrpoSettings, WarmupSettings, train_grpo, warm_up
from lakewright.policy.training.training_state import TIMES, StepClock
from tests.support.models.tiny_policy import board_play, tasks, tiny_model

STEP, START = 10.0, 45.0  # seconds of a step, and of the start of a process


class KilledError(Exception):
    """What ends a training in these tests."""


class Seconds:
    """A clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_seconds_at_a_step_are_those_of_the_first_time(tmp_path):
    file, now = tmp_path / TIMES, Seconds()
    clock = StepClock(0.0, tmp_path / "training.safetensors", now)
    first = []
    for step in (1, 2, 3):
        now.now += STEP
        first.append(clock.seconds_at(step))
    assert first == [10.0, 20.0, 30.0]
    file.write_bytes(file.read_bytes() + b"4 4")  # of a kill while the line was written
    now.now += 500
    again = StepClock(0.0, tmp_path / "training.safetensors", now)
    now.now += 3 * START
    assert [again.seconds_at(step) for step in (1, 2, 3)] == first
    now.now += STEP
    assert again.seconds_at(4) == 40.0


def learn_stage(folder, pause=math.inf, killed_at=math.inf, slow_start=0.0) -> int:
    """The last step of a stage of one minute, in which a step takes ten seconds."""
    now, steps = Seconds(), []

    def on_step(figures):
        if figures["step"] == killed_at:
            raise KilledError
        steps.append(figures["step"])

    def on_groups(groups):
        now.now += STEP + (slow_start if not steps else 0)

    settings = GrpoSettings(steps=30, prompts=2, group=2, minutes=1, schedule="cosine", learning_rate=1e-3)
    some, kept = list(tasks() * 2)[: settings.boards], folder / "training.safetensors"
    how = {"seed": 5, "scratch": folder, "state_file": kept, "now": now, "pause": lambda took: pause}
    train_grpo(tiny_model(), board_play(), some, settings, on_step=on_step, on_groups=on_groups, **how)
    return steps[-1]


@pytest.mark.parametrize("saved", [False, True])
def test_a_stage_that_is_killed_and_resumed_takes_as_many_steps(saved, tmp_path):
    pause = 2 * STEP if saved else math.inf
    whole = learn_stage(tmp_path / "whole", pause)
    assert whole == 6
    with pytest.raises(KilledError):
        learn_stage(tmp_path / "broken", pause, killed_at=5)
    assert (tmp_path / "broken" / "training.safetensors").exists() == saved
    assert learn_stage(tmp_path / "broken", pause, slow_start=START) == whole


def test_a_warm_up_that_is_killed_and_resumed_takes_as_many_steps(tmp_path):
    def learn(folder, killed_at=math.inf) -> int:
        now, losses = Seconds(), []

        def on_step(step, loss):
            now.now += STEP + (START if not losses and folder.name == "broken" and killed_at == math.inf else 0)
            if step == killed_at:
                raise KilledError
            losses.append(loss)

        settings, kept = WarmupSettings(steps=50, batch=4, minutes=2), folder / "training.safetensors"
        warm_up(tiny_model(), board_play(), tasks(), [], settings, 3, on_step, state_file=kept, clock=now)
        return len(losses)

    whole = learn(tmp_path / "whole")
    with pytest.raises(KilledError):
        learn(tmp_path / "broken", killed_at=6)
    assert learn(tmp_path / "broken") == whole == 12
