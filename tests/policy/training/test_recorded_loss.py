"""Steps of the warm-up that are recorded, as on a GPU, and how many operations a step takes."""

import pytest
import torch

from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.training import WarmupSettings, recorded_scores, warm_up
from lakewright.policy.training.recorded_scores import RecordedLoss
from lakewright.policy.training.warmup import _collate, _token_loss, plan_loss
from tests.policy.inference.test_recorded_steps import Operations, RecordedOperations, computing_model
from tests.policy.training.test_recorded_scores import RepeatedStep
from tests.support.models.small_language_model import language, language_model
from tests.support.models.tiny_policy import HORIZON, tasks, weights

SETTINGS = WarmupSettings(steps=24, batch=4, optimizer="adamw", matrix_rate=2e-2, other_rate=2e-2, augment=False)
# Forward and backward, for each layer and besides, of a model that computes in bfloat16.
A_LAYER, BESIDES = 142, 57


def learn_boards() -> tuple[list[float], dict[str, torch.Tensor]]:
    losses: list[float] = []
    play = BoardPlay(TextCodec(language(), TextSettings(prompt="compact")), HORIZON)
    trained = warm_up(language_model(), play, tasks()[:8], [], SETTINGS, 0, lambda _, loss: losses.append(loss))
    return losses, weights(trained)


@pytest.mark.deep
def test_recorded_steps_learn_what_others_do(monkeypatch):
    expected, others = learn_boards()
    monkeypatch.setattr(recorded_scores, "uses_graphs", lambda device: True)
    monkeypatch.setattr(recorded_scores, "StepGraph", RecordedOperations)
    monkeypatch.setattr(RecordedOperations, "recorded", 0)
    found, learned = learn_boards()
    assert RecordedOperations.recorded > 1, "batches of several shapes"
    assert found == pytest.approx(expected, rel=1e-3)
    for name, weight in learned.items():
        assert torch.allclose(weight, others[name], atol=2e-3), name


def test_a_batch_in_parts_has_the_loss_and_the_gradients_of_the_whole(monkeypatch):
    examples = [([1, 2, 3, 4], [7, 8, 9]), ([1, 2, 3, 9], [7]), ([4, 2, 3, 9], [7, 5]), ([4, 4, 3, 9], [1, 5])]
    found = []
    monkeypatch.setattr(recorded_scores, "StepGraph", RepeatedStep)
    for rows in (4, 3):
        monkeypatch.setattr(recorded_scores, "fit_rows", lambda *_, rows=rows, **__: rows)
        model = language_model()
        loss = RecordedLoss(model, _token_loss)
        for _ in range(3):  # computed, recorded, and replayed
            losses = loss.backward(*_collate(examples, 0))
        found.append((losses, [weight.grad.clone() for weight in model.parameters()]))
    assert torch.allclose(found[0][0], found[1][0], atol=1e-5)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def count_operations(layers: int) -> int:
    model = computing_model(layers)
    with Operations() as operations:
        plan_loss(model, [([1, 2, 3, 4, 5, 6], [7, 8]), ([1, 2, 3, 9], [7])], 0).backward()
    return operations.count


def test_a_step_of_the_warm_up_takes_few_operations():
    one, two = count_operations(1), count_operations(2)
    assert two - one <= A_LAYER
    assert one - (two - one) <= BESIDES
