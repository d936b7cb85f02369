"""A stage of GRPO that is interrupted goes on from what it kept, and ends as if nothing had happened."""

import math

import pytest
import torch

from lakewright.policy.training import GrpoSettings, load_place, train_grpo
from lakewright.policy.training.training_state import Place, read_generators, set_generators
from tests.support.models.tiny_policy import board_play, tasks, tiny_model, weights
from tests.support.refusals import refused

STEPS, BROKEN = 4, 3
MUON = {"optimizer": "muon", "average": 0.5, "schedule": "cosine", "guided": True, "oversample": 2}
WAYS = {"AdamW": {"learning_rate": 1e-3}, "Muon, averaged, rates that fall": MUON}


class InterruptedStageError(Exception):
    """What stops a stage in these tests."""


def learn(scratch, way, kept=None, until=STEPS + 1, model=None):
    """Weights, figures and numbers of the boards of a stage; it is interrupted when it reports the step `until`."""
    steps: list[dict] = []
    boards: list[int] = []

    def on_step(figures: dict) -> None:
        if figures["step"] == until:
            raise InterruptedStageError
        steps.append({name: value for name, value in figures.items() if name != "step_time"})

    settings = GrpoSettings(steps=STEPS, prompts=4, group=3, **way)
    trained = train_grpo(
        model or tiny_model(),
        board_play(),
        list(tasks() * 2),
        settings,
        seed=5,
        scratch=scratch,
        on_step=on_step,
        on_groups=lambda groups: boards.extend(group.key for group in groups),
        state_file=kept,
        notes=lambda: f"after {len(steps)}",
        pause=lambda took: -math.inf,
    )
    return weights(trained), steps, boards


@pytest.mark.parametrize(
    "way", [pytest.param(way, id=name, marks=() if way is MUON else pytest.mark.deep) for name, way in WAYS.items()]
)
def test_a_stage_that_is_interrupted_ends_with_the_same_weights_figures_and_boards(tmp_path, way):
    kept = tmp_path / "training.safetensors"
    wanted, steps, boards = learn(tmp_path / "whole", way)
    with pytest.raises(InterruptedStageError):
        learn(tmp_path / "broken", way, kept, until=BROKEN)
    place = load_place(kept)
    assert (place.step, place.notes) == (BROKEN - 1, f"after {BROKEN - 1}")
    found, rest, others = learn(tmp_path / "again", way, kept)
    assert rest == steps[BROKEN - 1 :], "the steps after the interruption"
    assert others == boards[place.boards :], "their boards"
    for name, weight in wanted.items():
        assert torch.equal(weight, found[name]), name


def test_a_file_that_another_stage_kept_is_refused(tmp_path):
    kept = tmp_path / "training.safetensors"
    with pytest.raises(InterruptedStageError):
        learn(tmp_path / "one", WAYS["AdamW"], kept, until=BROKEN)
    with refused("tensor averaged.lm_head.weight (and 14 more)"):
        learn(tmp_path / "other", MUON, kept)


def test_the_generator_of_a_gpu_is_kept_and_set_again(monkeypatch):
    gpu, states = torch.device("cuda", 0), {"now": torch.arange(16, dtype=torch.uint8)}
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: states["now"])
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: states.update(now=state))
    before = torch.get_rng_state()
    random, gpu_random = read_generators(gpu)
    place = Place(random=random, gpu_random=gpu_random)
    states["now"] = torch.zeros(16, dtype=torch.uint8)
    torch.rand(1)
    set_generators(place, gpu)
    assert torch.equal(states["now"], torch.arange(16, dtype=torch.uint8)), "answers are drawn on the GPU there"
    assert torch.equal(torch.get_rng_state(), before)
    assert read_generators(torch.device("cpu"))[1] == "", "a training on the CPU has none"
