"""A warm-up that is interrupted goes on from what it kept, and ends as if nothing had happened."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from lakewright.core_jax.errors import InputError
from lakewright.policy.model_settings import ModelSettings
from lakewright.policy.models import build_model
from lakewright.policy.tasks import BoardTask
from lakewright.policy.training import BoardTaskStream, WarmupSettings, load_place, warm_up
from tests.support.models.damaged_weights import Damage, damage_file, drop, poison, put
from tests.support.models.tiny_policy import board_play, tasks, tiny_model, tokenizer, weights
from tests.support.refusals import refused

STEPS, BROKEN = 30, 21
SETTINGS = WarmupSettings(steps=STEPS, batch=4)


class InterruptedWarmupError(Exception):
    """What stops a warm-up in these tests."""


class ListStream(BoardTaskStream):
    """A stream of boards from a list, without a process of its own."""

    def __init__(self, first: int) -> None:
        self._left, self.replaced = (tasks() * STEPS)[first:], 0

    def take(self, count: int) -> list[BoardTask]:
        """The next ones."""
        some, self._left = self._left[:count], self._left[count:]
        return some


def learn(source, kept=None, until=STEPS, extra=(), settings=SETTINGS):
    """Weights and losses of a warm-up; it is interrupted before it reports the step `until`."""
    losses: list[float] = []

    def on_step(step: int, loss: float) -> None:
        if step == until:
            raise InterruptedWarmupError
        losses.append(loss)

    how = {"state_file": kept, "pause": lambda took: 0.0}
    return weights(warm_up(tiny_model(), board_play(), source, extra, settings, 3, on_step, **how)), losses


@pytest.mark.parametrize("source", [lambda first: tasks(), ListStream], ids=["a fixed set", "a stream"])
def test_a_warm_up_that_is_interrupted_ends_with_the_same_weights_and_losses(tmp_path, source):
    kept = tmp_path / "training.safetensors"
    wanted, losses = learn(source(0))
    with pytest.raises(InterruptedWarmupError):
        learn(source(0), kept, until=BROKEN)
    place = load_place(kept)
    assert 0 < place.step <= BROKEN
    assert place.boards == 4 * place.step
    found, again = learn(source(place.boards), kept)
    assert again == losses
    for name, weight in wanted.items():
        assert torch.equal(weight, found[name]), name


def test_a_warm_up_whose_other_examples_begin_later_goes_on_with_the_same_boards(tmp_path):
    kept = tmp_path / "training.safetensors"
    other = {
        "extra": [([5, 6], [7, 8])],
        "settings": WarmupSettings(steps=STEPS, batch=4, extra_share=0.5, extra_from=0.3),
    }
    wanted, losses = learn(ListStream(0), **other)
    with pytest.raises(InterruptedWarmupError):
        learn(ListStream(0), kept, until=BROKEN + 4, **other)
    place = load_place(kept)
    assert (place.step, place.boards) == (24, 16 * 4 + 8 * 2), "boards alone in the first two pools of eight"
    found, again = learn(ListStream(place.boards), kept, **other)
    assert again == losses
    for name, weight in wanted.items():
        assert torch.equal(weight, found[name]), name


def test_a_file_that_another_training_kept_is_refused(tmp_path):
    kept = tmp_path / "training.safetensors"
    with pytest.raises(InterruptedWarmupError):
        learn(tasks(), kept, until=BROKEN)
    model = build_model(ModelSettings(hidden=16, layers=1, heads=2, mlp=16), tokenizer(), seed=0)
    with refused("[182, 32]", "[182, 16]"):
        warm_up(model, board_play(), tasks(), [], SETTINGS, 3, state_file=kept)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What a warm-up saved before it was interrupted."""
    file = tmp_path_factory.mktemp("saved") / "training.safetensors"
    with pytest.raises(InterruptedWarmupError):
        learn(tasks(), file, until=BROKEN)
    return file


NORM, MOMENT = "model.model.norm.weight", "optimizer.1.0.exp_avg"
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a weight is missing": (drop(NORM), f"tensor {NORM} is missing"),
    "an averaged weight is missing": (drop("averaged.lm_head.weight"), "averaged.lm_head.weight is missing"),
    "a moment is missing": (drop(MOMENT), f"tensor {MOMENT} is missing"),
    "a weight that would be broadcast": (put(NORM, torch.ones(1)), f"{NORM} has shape [1], the model needs [32]"),
    "a moment of another shape": (put(MOMENT, torch.ones(1)), f"{MOMENT} has shape [1]"),
    "one too many": (put("model.more", torch.ones(1)), "model.more is not one of this training"),
    "a weight is no number": (poison(NORM, float("nan")), f"{NORM} holds nan"),
    "a moment is infinite": (poison(MOMENT, float("inf")), f"{MOMENT} holds inf"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_training_whose_tensors_are_damaged_is_not_continued(saved, tmp_path, name):
    damage, said = DAMAGES[name]
    damage_file(file := Path(shutil.copy(saved, tmp_path)), damage)
    with pytest.raises(InputError) as refused:
        learn(tasks(), file)
    assert str(refused.value).startswith(f"{file}: tensor ")
    assert said in str(refused.value)
    assert str(refused.value).endswith("; remove it to begin again")


def test_a_training_that_an_earlier_version_saved_is_continued(saved, tmp_path):
    """Its file does not list its tensors."""
    file = Path(shutil.copy(saved, tmp_path))
    with safe_open(file, "pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no dictionary
        save_file(tensors, file, {"place": opened.metadata()["place"]})
    found, _ = learn(tasks(), file)
    for name, weight in learn(tasks())[0].items():
        assert torch.equal(weight, found[name]), name


def test_a_damaged_file_is_refused(tmp_path):
    kept = tmp_path / "training.safetensors"
    kept.write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="not a saved state of this training"):
        load_place(kept)
