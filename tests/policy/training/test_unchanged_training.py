"""A tiny warm-up and a tiny GRPO training on the lake, as they were when nothing but boards could be learned.

The numbers are in `unchanged_training.json`. Token ids, rewards and failures must be the same; figures and weights are
compared to what another processor may round differently.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from lakewright.policy.training import GrpoSettings, WarmupSettings, train_grpo, warm_up
from tests.support.models.tiny_policy import board_play, tasks, tiny_model

RECORDED = Path(__file__).with_name("unchanged_training.json")
TIMES = ("step_time", "epoch")  # figures of a log that differ from run to run
WARMUP = WarmupSettings(steps=200, batch=8, matrix_rate=1e-2, other_rate=1e-2, decay=0.9)
GRPO = GrpoSettings(steps=2, prompts=4, group=3, learning_rate=1e-3, oversample=2, guided=True)


def digest(model: PreTrainedModel) -> dict[str, list[float]]:
    """The sums of absolute values and of squares of each matrix of weights."""
    with torch.inference_mode():
        return {
            name: [float(w.double().abs().sum()), float(w.double().square().sum())]
            for name, w in model.named_parameters()
        }


def train(scratch: Path) -> dict[str, Any]:
    """What the two trainings give."""
    losses: list[float] = []
    extra = [([5, 6], [7, 8])]
    model = warm_up(tiny_model(), board_play(), tasks()[:20], extra, WARMUP, 3, lambda _, loss: losses.append(loss))
    warmed = digest(model)
    steps: list[dict[str, Any]] = []
    groups, answers = [], []

    def on_answers(answered: list) -> None:
        for made in answered:
            judged = [made.rewards.tolist(), made.judged.failures]
            answers.append([list(map(int, made.prompt)), made.answers, *judged])

    model = train_grpo(
        *(model, board_play(6), list(tasks()[: GRPO.boards]), GRPO),
        seed=5,
        scratch=scratch,
        on_step=lambda log: steps.append({name: value for name, value in log.items() if name not in TIMES}),
        on_groups=lambda made: groups.extend([g.key, g.valid, g.reward, g.failures] for g in made),
        on_answers=on_answers,
    )
    return {
        "losses": losses,
        "warmed": warmed,
        "steps": steps,
        "groups": groups,
        "answers": answers,
        "w": digest(model),
    }


def assert_close(found: Any, recorded: Any, place: str) -> None:
    """Equal but for the rounding of numbers that are not whole."""
    if isinstance(recorded, dict):
        assert list(found) == list(recorded), place
        for name, value in recorded.items():
            assert_close(found[name], value, f"{place}.{name}")
    elif isinstance(recorded, list):
        assert len(found) == len(recorded), place
        for number, (one, other) in enumerate(zip(found, recorded, strict=True)):
            assert_close(one, other, f"{place}[{number}]")
    elif isinstance(recorded, float):
        assert found == pytest.approx(recorded, rel=1e-3, abs=1e-5), place
    else:
        assert found == recorded, place


def test_the_lake_is_learned_as_it_was_before_other_tasks_could_be(tmp_path):
    assert_close(train(tmp_path), json.loads(RECORDED.read_text()), "training")
