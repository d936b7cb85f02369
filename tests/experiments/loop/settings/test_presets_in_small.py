"""The presets for one GPU run to their end on a CPU, with all their settings but device, model and lengths."""

import copy
from pathlib import Path

import pytest

from lakewright.core_jax.types import MOVES
from lakewright.experiments.loop.closed_loop import run
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.inference import sampling
from lakewright.policy.models import save_checkpoint
from tests.support.models.small_language_model import language, language_model

SMALL = (
    "device=cpu",
    "stages=2",
    "horizon=8",
    "text.max_tokens=24",
    "grpo.steps=2",
    "grpo.prompts=2",
    "grpo.group=4",
    "grpo.host.micro_batch=4",
    "engineer.answer=64",
    "trial.boards=4",
    "trial.samples=2",
    "validation.boards=1",
)
WARMED = ("warmup.steps=3", "warmup.boards=48", "warmup.batch=8")
PRESETS = {"smollm2-gpu": WARMED, "qwen3-0.6b": WARMED, "qwen3-4b-adapter": ()}


def save_model(folder: Path) -> Path:
    """The small language model, with a token for each move, as the compact prompt needs."""
    tokenizer, model = copy.deepcopy(language()), language_model()
    codec = TextCodec(tokenizer, TextSettings(prompt="compact"))
    tokenizer.add_tokens([f" {codec.move_word(move)}" for move in range(len(MOVES))])
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    save_checkpoint(folder, model, tokenizer)
    return folder


@pytest.mark.deep
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_for_one_gpu_runs_to_its_end(name, tmp_path, monkeypatch):
    if name == "qwen3-4b-adapter":
        monkeypatch.setattr(sampling, "generate_answers", None)  # an adapter is decoded here
    settings = load_settings(name, [*SMALL, *PRESETS[name], f"start={save_model(tmp_path / 'model')}"])
    folder = RunFolder(tmp_path / "run")
    run(settings, folder)
    stages = folder.finished_stages()
    assert len(stages) == 2
    for stage in (folder.warmup, *stages):
        assert read_record(stage.validation, Validation).pooled.problems
    assert all(len(stage.read_steps()) == 2 for stage in stages)
    assert folder.warmup.next.exists(), "the first stage is redesigned, too"
