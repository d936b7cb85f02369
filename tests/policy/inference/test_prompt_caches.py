"""Prompts that are read once give the answers, the losses and the gradients of prompts that are read for every row."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.inference import common_prefix, sample
from lakewright.policy.training import plan_loss, warmup
from tests.support.models.small_language_model import language, language_model
from tests.support.models.tiny_policy import tasks

SOME = tasks()[:4]
CODEC = TextCodec(language(), TextSettings(prompt="compact", max_tokens=12))
PROMPTS = [CODEC.encode_prompt(task.board) for task in SOME]
EXAMPLES = [(CODEC.encode_prompt(task.board), CODEC.encode_answer(task.board, task.moves)) for task in SOME]


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=5))
def test_a_common_prefix_is_the_longest_that_leaves_every_prompt_a_token(prompts):
    length = common_prefix(prompts)
    assert all(len(prompt) > length for prompt in prompts)
    assert len({tuple(prompt[:length]) for prompt in prompts}) == 1
    longer = {tuple(prompt[: length + 1]) for prompt in prompts}
    assert len(longer) > 1 or min(map(len, prompts)) == length + 1


def answers(prompts, copies, temperature):
    torch.manual_seed(0)
    how = {"copies": copies, "max_new_tokens": 12, "temperature": temperature, "scored": False}
    return sample(language_model(), language(), prompts, **how).answers


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_groups_whose_prompt_is_read_once_are_those_whose_prompt_is_read_for_every_answer(temperature):
    repeated = [prompt for prompt in sorted(PROMPTS, key=len) for _ in range(3)]
    assert answers(sorted(PROMPTS, key=len), 3, temperature) == answers(repeated, 1, temperature)


def gradients(loss):
    model = language_model()
    found = loss(model)
    found.backward()
    return found.item(), [weight.grad for weight in model.parameters()]


def plainly(model):
    """The mean over all tokens of answers, row by row."""
    parts = []
    for prompt, answer in EXAMPLES:
        logits = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        parts.append(torch.nn.functional.cross_entropy(logits, torch.tensor(answer), reduction="sum"))
    return torch.stack(parts).sum() / sum(len(answer) for _, answer in EXAMPLES)


@pytest.mark.parametrize("shared", [True, False])
def test_the_loss_of_plans_is_that_of_each_by_itself(shared, monkeypatch):
    monkeypatch.setattr(warmup, "should_share_prefix", lambda *_: shared)
    assert common_prefix(PROMPTS) > 4, "all chats begin alike"
    loss, grads = gradients(lambda model: plan_loss(model, EXAMPLES, language().pad_token_id))
    expected, wanted = gradients(plainly)
    assert loss == pytest.approx(expected, rel=1e-5)
    for grad, other in zip(grads, wanted, strict=True):
        assert torch.allclose(grad, other, atol=1e-5)
