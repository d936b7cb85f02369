"""Updates of GRPO whose scores are recorded, as on a GPU: here the steps of a recording are computed again."""

from collections.abc import Callable

import pytest
import torch

from lakewright.policy.inference import decoders
from lakewright.policy.training import grpo_trainer, recorded_scores, train_grpo
from lakewright.policy.training.grpo_trainer import answer_log_probs
from lakewright.policy.training.recorded_scores import RecordedScores
from lakewright.policy.training.settings import GrpoSettings, HostSettings
from tests.policy.inference.test_sampling import grouped_query_model
from tests.support.models.tiny_policy import board_play, tasks, tiny_model, weights

SETTINGS = GrpoSettings(steps=4, prompts=4, group=4, learning_rate=1e-2, guided=True, host=HostSettings(micro_batch=8))


class RepeatedStep:
    """A `StepGraph` for the CPU: a recording computes its step in memory of its own, a replay into the same memory."""

    recorded = 0

    def __init__(self, step: Callable[[], torch.Tensor], *others: object, whole: bool = False) -> None:
        RepeatedStep.recorded += 1
        self._step, self._made = step, None if not whole else step()

    def replay(self) -> torch.Tensor:
        made = self._step()
        if self._made is None:
            return made
        with torch.no_grad():
            self._made.copy_(made)
        return self._made


def batch(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Token ids and mask: prompts padded on the left, answers on the right."""
    chance = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 60, (rows, 15), generator=chance)
    mask = torch.ones_like(ids)
    mask[1, :3] = mask[2, -2:] = 0
    return ids, mask, 6


@pytest.mark.parametrize("recorded", [False, True])
def test_scores_and_gradients_are_those_of_one_operation_after_another(recorded, monkeypatch):
    monkeypatch.setattr(recorded_scores, "StepGraph", RepeatedStep)
    model, other = grouped_query_model(), grouped_query_model()
    scores = RecordedScores(model, 0.7, None)
    for seed in range(3 if recorded else 1):
        model.zero_grad()
        other.zero_grad()
        for part in range(2):  # whose gradients are added up
            ids, mask, answer = batch(4, 2 * seed + part)
            found, entropies = scores.score(ids, mask, answer)
            expected, wanted = answer_log_probs(other, ids, mask, answer, 0.7)
            assert torch.allclose(found, expected, atol=1e-4)
            assert torch.allclose(entropies, wanted, atol=1e-4)
            (found * found).sum().backward()
            (expected * expected).sum().backward()
        for weight, one in zip(model.parameters(), other.parameters(), strict=True):
            assert torch.allclose(weight.grad, one.grad, atol=1e-3)


def learn(scratch) -> tuple[list[float], dict[str, torch.Tensor]]:
    losses: list[float] = []
    model = tiny_model()
    some = list(tasks()[: SETTINGS.boards])
    train_grpo(
        *(model, board_play(), some, SETTINGS), seed=0, scratch=scratch, on_step=lambda log: losses.append(log["loss"])
    )
    return losses, weights(model)


def test_recorded_updates_learn_what_others_do(tmp_path, monkeypatch):
    expected, others = learn(tmp_path / "one")
    monkeypatch.setattr(recorded_scores, "StepGraph", RepeatedStep)
    monkeypatch.setattr(grpo_trainer, "is_recordable", lambda model: True)
    monkeypatch.setattr(RepeatedStep, "recorded", 0)
    assert not decoders.uses_graphs(torch.device("cpu"))
    found, learned = learn(tmp_path / "other")
    assert RepeatedStep.recorded >= 2
    assert found == pytest.approx(expected, abs=1e-3)
    for name, weight in learned.items():
        assert torch.allclose(weight, others[name], atol=5e-3), name


def test_a_batch_has_each_prompt_once_and_sizes_that_differ_little_are_equal():
    ids, mask, answer = batch(4, 0)
    repeated = torch.cat([ids, ids]), torch.cat([mask, mask])
    one, other = (recorded_scores._split_prompts(*given, answer) for given in ((ids, mask), repeated))
    assert one.prompts.shape == other.prompts.shape == (16, 16)
    assert one.answers.shape == (4, 16)
    assert torch.equal(other.which[:4], other.which[4:])
    assert torch.equal(one.prompts[one.which][:, -9:], ids[:, :9])
