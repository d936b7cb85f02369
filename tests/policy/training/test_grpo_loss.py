"""Reading each prompt once gives what TRL's trainer computes, and the same gradients."""

from copy import deepcopy
from types import SimpleNamespace

import pytest
import torch

from lakewright.policy.codecs import TokensCodec
from lakewright.policy.training import GrpoSettings, train_grpo
from lakewright.policy.training.grpo_loss import PlanTrainer, answer_log_probs
from lakewright.policy.training.optimizers import rate_scale
from tests.support.models.tiny_policy import board_play, tasks, tiny_model, tokenizer

PAD = tokenizer().pad_token_id


def batch(groups: int = 5, copies: int = 4) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Boards of two sizes, answers of many lengths, one without a token among them, in an order of chance."""
    generator = torch.Generator().manual_seed(0)
    prompts = [TokensCodec(tokenizer()).encode_prompt(task.board) for task in tasks()[:groups] for _ in range(copies)]
    lengths = [0, *torch.randint(1, 20, (len(prompts) - 1,), generator=generator).tolist()]
    wide, long = max(map(len, prompts)), max(lengths)
    ids, mask = [], []
    for prompt, length in zip(prompts, lengths, strict=True):
        answer = torch.randint(4, len(tokenizer()), (length,), generator=generator).tolist()
        before, after = wide - len(prompt), long - length
        ids.append([PAD] * before + prompt + answer + [PAD] * after)
        mask.append([0] * before + [1] * (len(prompt) + length) + [0] * after)
    order = torch.randperm(len(ids), generator=generator)
    return torch.tensor(ids)[order], torch.tensor(mask)[order], long


def plainly(model, ids, mask, answer, temperature):
    """Every row by itself."""
    logits = model(input_ids=ids, attention_mask=mask).logits[:, -answer - 1 : -1] / temperature
    log_probs = logits.log_softmax(-1)
    there = mask[:, -answer:]
    found = log_probs.gather(-1, ids[:, -answer:, None]).squeeze(-1)
    return found * there, -(log_probs.exp() * log_probs).sum(-1) * there


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_prompts_that_are_shared_give_the_same_scores_and_gradients(temperature):
    ids, mask, answer = batch()
    one, other = tiny_model(), tiny_model()
    shared, plain = (
        answer_log_probs(one, ids, mask, answer, temperature, together=7),
        plainly(other, ids, mask, answer, temperature),
    )
    for found, expected in zip(shared, plain, strict=True):
        assert torch.allclose(found, expected, atol=1e-5)
    weights = torch.linspace(-1, 1, shared[0].numel()).view_as(shared[0])
    for log_probs in (shared[0], plain[0]):
        (log_probs * weights).sum().backward()
    for (name, parameter), expected in zip(one.named_parameters(), other.parameters(), strict=True):
        assert torch.allclose(parameter.grad, expected.grad, atol=1e-4), name


@pytest.mark.deep
def test_training_goes_the_same_way_whether_prompts_are_shared_or_not(tmp_path):
    """Guards against a TRL that asks its trainer for something else."""

    shared, logs, _ = trained(tmp_path)
    plain, expected, _ = trained(tmp_path, share_prompts=False)
    for log, other in zip(logs, expected, strict=True):
        for name in ("reward", "loss", "entropy", "grad_norm"):
            assert log[name] == pytest.approx(other[name], abs=1e-5), name
    for (name, weight), other in zip(shared.named_parameters(), plain.parameters(), strict=True):
        assert torch.allclose(weight, other, atol=1e-5), name


def trained(tmp_path, **changes):
    """Four steps of a tiny model: the model, the logs, and the one that it was."""
    logs, model = [], tiny_model(seed=2)  # one whose answers do not all earn the same
    settings = GrpoSettings(steps=4, prompts=4, group=4, learning_rate=1e-3, **changes)
    given = {"seed": 1, "scratch": tmp_path, "on_step": logs.append}
    found = train_grpo(deepcopy(model), board_play(), list(tasks()[:16]), settings, **given)
    return found, logs, model


def reread(model):
    """A model of the same weights whose forward nobody changed."""
    plain = tiny_model(seed=1)
    plain.load_state_dict(model.state_dict())
    return plain


def muon_moves(tmp_path, **changes) -> list[float]:
    """How far each matrix went in four steps."""
    found, _, before = trained(tmp_path, optimizer="muon", **changes)
    pairs = zip(found.named_parameters(), before.parameters(), strict=True)
    return [float((weight - old).norm()) for (name, weight), old in pairs if "proj" in name]


def test_muon_moves_matrices_by_the_rate_and_not_by_their_gradients(tmp_path):
    moved = muon_moves(tmp_path)
    assert min(moved) > 0
    assert max(moved) < 20 * min(moved), "orthogonalised updates are of one size"


def test_muon_goes_as_far_as_its_schedule_says(tmp_path):
    """Launchers give an optimizer new groups: the rates that are scheduled must be those that are used."""
    scale = max(rate_scale(step, step / 4) for step in range(4))
    assert scale < 0.05
    risen, constant = muon_moves(tmp_path, schedule="cosine"), muon_moves(tmp_path)
    assert all(a < 2 * scale * b for a, b in zip(risen, constant, strict=True)), (risen, constant)


def test_rates_rise_and_fall_to_a_tenth_and_constant_ones_stay(tmp_path):
    _, logs, _ = trained(tmp_path, schedule="cosine")
    logged = [log["learning_rate"] for log in logs]
    assert logged == pytest.approx([1e-3 * rate_scale(step, step / 4) for step in range(4)])
    _, logs, _ = trained(tmp_path)
    assert [log["learning_rate"] for log in logs] == [1e-3] * 4


def test_rates_fall_by_the_clock_where_minutes_end_the_training():
    now = [0.0]
    stepping = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    clock = SimpleNamespace(seconds_at=lambda step: now[0])
    stage = SimpleNamespace(_schedule="cosine", _minutes=2.0, _clock=clock)
    schedule = PlanTrainer.create_scheduler(stage, 1_000_000, stepping)
    rates = []
    for seconds in (0, 30, 60, 90, 120, 150):
        now[0] = float(seconds)
        for _ in range(60):
            schedule.step()
        rates.append(schedule.get_last_lr()[0])
    assert rates == pytest.approx([rate_scale(1000, done) for done in (0, 0.25, 0.5, 0.75, 1.0, 1.0)], abs=1e-3)


@pytest.mark.deep
def test_averaged_weights_are_kept_in_place_of_the_last(tmp_path):
    last, logs, before = trained(tmp_path)
    found, same, _ = trained(tmp_path, average=0.9)
    assert [log["reward"] for log in logs] == [log["reward"] for log in same], "training itself is as it was"
    given, mask, answer = batch()
    scores = [plainly(model, given, mask, answer, 1.0)[0] for model in (found, reread(found))]
    assert torch.allclose(*scores), "what is returned plans with the weights that it has"
    nearer = [
        (weight - old).norm() < (end - old).norm()
        for weight, end, old in zip(found.parameters(), last.parameters(), before.parameters(), strict=True)
        if not torch.equal(end, old)
    ]
    assert nearer
    assert all(nearer)
