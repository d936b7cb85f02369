"""The longest sequences of a run, on which its memory depends: of boards with few holes and with many, and padded."""

import pytest
import torch

from lakewright.core_jax.config import holes_of
from lakewright.experiments.loop.host.estimate import estimate_of
from lakewright.experiments.loop.host.sequence_lengths import longest_sequences
from lakewright.experiments.loop.settings.run_settings import GuardSettings, ValidationSettings, load_settings
from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.model_settings import ModelSettings
from lakewright.policy.models import build_model
from lakewright.policy.training import GrpoSettings
from lakewright.policy.training.recorded_scores import RecordedScores
from tests.support.boards.sample_boards import each, random_boards
from tests.support.models.small_language_model import language, language_checkpoint
from tests.support.models.tiny_policy import tiny_run, tokenizer
from tests.support.processes.tensor_memory import peak_of_tensors

COMPACT = TextSettings(max_tokens=48, prompt="compact")
MODEL = ModelSettings(hidden=64, layers=3, heads=4, mlp=96)


def test_compact_prompts_grow_with_holes_so_the_boards_with_the_most_are_measured():
    validation = ValidationSettings(hole_ratios=(0.0, 0.3), wait_ratios=(0.5,), boards=4)
    run = {"codec": "text", "text": COMPACT, "start": str(language_checkpoint()), "validation": validation}
    lengths = longest_sequences(tiny_run(**run, guard=GuardSettings(most={"hole_ratio": 0.4})))
    codec = TextCodec(language(), COMPACT)
    for name, ratio in (("prompt", 0.4), ("held_out", 0.3), ("warmup", 0.25)):
        boards = each(random_boards(0, 60, 5, holes_of(5, 2, ratio)))
        longest = max(len(codec.encode_prompt(board)) for board in boards)
        assert longest <= getattr(lengths, name) <= 1.15 * longest, name


def test_without_a_tokenizer_digits_and_the_template_count():
    lengths = longest_sequences(load_settings("qwen3-0.6b", []))
    assert not lengths.exact
    assert 80 <= lengths.held_out <= 92, "6x6 boards with a hole ratio of 0.3 have 80 tokens"


@pytest.mark.parametrize(("prompts", "group"), [(48, 4), pytest.param(4, 8, marks=pytest.mark.deep)])
def test_the_peak_of_a_recorded_update_is_as_estimated(prompts, group):
    settings = tiny_run(
        model=MODEL, horizon=18, device="cuda", grpo=GrpoSettings(steps=1, prompts=prompts, group=group)
    )
    found = estimate_of(settings)
    (update,) = (phase.items for phase in found.phases if phase.name == "update")
    estimated = sum(update.values()) - sum(update.get(name, 0) for name in ("optimizer", "average", "recordings"))
    with peak_of_tensors() as peak:
        model = build_model(MODEL, tokenizer(), 0)
        for weight in model.parameters():
            weight.grad = torch.zeros_like(weight)
        asked = torch.randint(5, 60, (prompts, found.lengths.prompt)).repeat_interleave(group, 0)
        ids = torch.cat([asked, torch.randint(5, 60, (len(asked), found.lengths.answer))], 1)
        log_probs, _ = RecordedScores(model, 1.0, None).score(ids, torch.ones_like(ids), found.lengths.answer)
        log_probs.sum().backward()
    measured = peak.bytes + update["gradients"] // 2  # a recording has gradients of its own
    assert 0.9 * measured <= estimated <= 1.15 * measured
