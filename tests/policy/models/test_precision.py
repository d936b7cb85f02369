"""Mixed precision: what a marked model computes is bfloat16, what it keeps is float32."""

from copy import deepcopy

import torch

from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.models import compute_in_bfloat16, computes_in_bfloat16, use_precision
from lakewright.policy.training import WarmupSettings, warm_up
from tests.support.models.small_language_model import language, language_model
from tests.support.models.tiny_policy import HORIZON, tasks, weights


def test_a_marked_model_and_its_copies_compute_in_bfloat16():
    model = language_model()
    with use_precision(model):
        assert model(input_ids=torch.tensor([[1, 2]])).logits.dtype == torch.float32
    compute_in_bfloat16(model)
    for marked in (model, deepcopy(model)):
        assert computes_in_bfloat16(marked)
        with use_precision(marked):
            assert marked(input_ids=torch.tensor([[1, 2]])).logits.dtype == torch.bfloat16


def test_a_warm_up_with_adamw_learns_and_leaves_frozen_embeddings_alone():
    model, losses = language_model(), list[float]()
    compute_in_bfloat16(model)
    model.get_input_embeddings().requires_grad_(False)
    settings = WarmupSettings(steps=60, batch=4, optimizer="adamw", matrix_rate=2e-2, other_rate=2e-2)
    play = BoardPlay(TextCodec(language(), TextSettings(prompt="compact")), HORIZON)
    trained = warm_up(model, play, tasks()[:8], [], settings, 0, lambda _, loss: losses.append(loss))
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    before = weights(language_model())
    for name, weight in weights(trained).items():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, before[name]) == ("embed_tokens" in name), name
