"""Updates of GRPO whose scores are recorded, as on a GPU: here the steps of a recording are computed again."""

from collections.abc import Callable

import pytest
import torch

from lakewright.policy.inference import decoders
from lakewright.policy.training import grpo_loss, recorded_scores, train_grpo
from lakewright.policy.training.grpo_loss import answer_log_probs
from lakewright.policy.training.recorded_scores import RecordedScores
from lakewright.policy.training.settings import GrpoSettings, HostSettings, allows_shared_prompts
from tests.policy.inference.test_recorded_steps import Operations, computing_model
from tests.policy.inference.test_sampling import grouped_query_model
from tests.support.models.tiny_policy import board_play, tasks, tiny_model, weights
from tests.support.processes.tensor_memory import peak_of_tensors

SETTINGS = GrpoSettings(steps=4, prompts=4, group=4, learning_rate=1e-2, guided=True, host=HostSettings(micro_batch=8))


class RepeatedStep:
    """A `StepGraph` for the CPU: a recording computes its step in memory of its own, a replay into the same memory."""

    recorded = 0

    def __init__(self, step: Callable[[], torch.Tensor], *others: object, whole: bool = False) -> None:
        RepeatedStep.recorded += 1
        self._step, self._made = step, None if not whole else step()

    @classmethod
    def record(cls, *given: object, **named: object) -> "RepeatedStep":
        return cls(*given, **named)

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


@pytest.mark.parametrize("room", ["for all", "for a part", "for no recording"])
@pytest.mark.parametrize("recorded", [False, True])
def test_scores_and_gradients_are_those_of_one_operation_after_another(recorded, room, monkeypatch):
    monkeypatch.setattr(recorded_scores, "StepGraph", RepeatedStep)
    if room == "for a part":
        monkeypatch.setattr(recorded_scores, "fit_rows", lambda *_, **__: 3)
    if room == "for no recording":
        monkeypatch.setattr(RepeatedStep, "record", lambda *_, **__: None)
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


def test_parts_of_a_batch_hold_no_more_memory_than_one_of_them(monkeypatch):
    model, (ids, mask, answer) = grouped_query_model(), batch(48, 0)
    held: dict[int, int] = {}
    monkeypatch.setattr(recorded_scores.StepGraph, "record", lambda *_, **__: None)
    for rows in (48, 6):
        monkeypatch.setattr(recorded_scores, "fit_rows", lambda *_, rows=rows, **__: rows)
        with peak_of_tensors() as peak:
            log_probs, _ = RecordedScores(model, 1.0, None).score(ids, mask, answer)
            log_probs.sum().backward()
        held[rows] = peak.bytes
    assert held[6] < held[48] / 3


# Forward and backward of an update that reads each prompt once: in each layer, and besides.
A_LAYER, BESIDES = 315, 114


def count_operations(layers: int) -> int:
    model, (ids, mask, answer) = computing_model(layers), batch(4, 0)
    with Operations() as operations:
        log_probs, _ = RecordedScores(model, 1.0, torch.bfloat16).score(ids % 50, mask, answer)
        log_probs.sum().backward()
    return operations.count


def test_an_update_takes_few_operations():
    one, two = count_operations(1), count_operations(2)
    assert two - one <= A_LAYER
    assert one - (two - one) <= BESIDES


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
    monkeypatch.setattr(grpo_loss, "is_recordable", lambda model: True)
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


def test_prompts_are_read_once_if_the_scores_of_some_answers_fit_into_the_memory():
    here, qwen, smollm, memory = HostSettings(), 151_936, 49_152, 80 * 10**9
    on_cpu = [allows_shared_prompts(here, tokens, smollm, elsewhere=False) for tokens in (85, 86)]
    on_gpu = [allows_shared_prompts(here, tokens, qwen, elsewhere=False, memory=memory) for tokens in (411, 412)]
    assert on_cpu == on_gpu == [True, False]
    assert not allows_shared_prompts(HostSettings(checkpointing=True), 64, qwen, elsewhere=False, memory=memory)
