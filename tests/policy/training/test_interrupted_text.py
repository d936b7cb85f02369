"""The training of problems in text goes on after an interruption as if nothing had happened, wherever it was."""

import math

import pytest
import torch

from lakewright.policy.play import DrawnTasks
from lakewright.policy.training import (
    GrpoSettings,
    WarmupSettings,
    load_place,
    train_grpo,
    warm_up,
)
from tests.support.models.text_problems import byte_play, draw_pairs
from tests.support.models.tiny_policy import weights


class InterruptedTrainingError(Exception):
    """What stops a training in these tests."""


def kept_whenever_possible(took: float) -> float:
    return -math.inf


def warm(kept=None, until=math.inf):
    """Weights and losses of a warm-up that is interrupted before it reports the step `until`."""
    losses: list[float] = []

    def on_step(step: int, loss: float) -> None:
        if step == until:
            raise InterruptedTrainingError
        losses.append(loss)

    model, play = byte_play()
    drawn = DrawnTasks(draw_pairs, load_place(kept).boards)
    how = {"state_file": kept, "pause": kept_whenever_possible}
    return weights(warm_up(model, play, drawn, [], WarmupSettings(steps=20, batch=4), 3, on_step, **how)), losses


def reinforce(scratch, kept=None, until=math.inf):
    """Weights and rewards of GRPO that is interrupted when it reports the step `until`."""
    rewards: list[float] = []

    def on_step(figures: dict) -> None:
        if figures["step"] == until:
            raise InterruptedTrainingError
        rewards.append(figures["reward"])

    model, play = byte_play()
    settings = GrpoSettings(steps=4, prompts=2, group=3, learning_rate=1e-3, guided=True)
    drawn = DrawnTasks(draw_pairs)
    how = {"scratch": scratch, "state_file": kept, "pause": kept_whenever_possible}
    return weights(train_grpo(model, play, drawn, settings, seed=5, on_step=on_step, **how)), rewards


def test_an_interrupted_warm_up_on_a_stream_ends_with_the_same_weights(tmp_path):
    kept = tmp_path / "training.safetensors"
    wanted, losses = warm()
    with pytest.raises(InterruptedTrainingError):
        warm(kept, until=18)
    assert load_place(kept).boards == 16 * 4
    found, again = warm(kept)
    assert again == losses
    assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())


def test_an_interrupted_stage_on_a_stream_ends_with_the_same_weights(tmp_path):
    kept = tmp_path / "training.safetensors"
    wanted, rewards = reinforce(tmp_path / "whole")
    with pytest.raises(InterruptedTrainingError):
        reinforce(tmp_path / "broken", kept, until=3)
    found, rest = reinforce(tmp_path / "again", kept)
    assert rest == rewards[2:]
    assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())
