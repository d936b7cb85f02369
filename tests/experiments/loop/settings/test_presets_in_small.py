"""The presets for one GPU run to their end on a CPU, with all their settings but device, model and lengths."""

import pytest

from lakewright.experiments.loop.closed_loop import run
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.policy.inference import sampling
from tests.support.models.small_language_model import language_checkpoint

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


@pytest.mark.deep
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_for_one_gpu_runs_to_its_end(name, tmp_path, monkeypatch):
    if name == "qwen3-4b-adapter":
        monkeypatch.setattr(sampling, "generate_answers", None)  # an adapter is decoded here
    settings = load_settings(name, [*SMALL, *PRESETS[name], f"start={language_checkpoint()}"])
    folder = RunFolder(tmp_path / "run")
    run(settings, folder)
    stages = folder.finished_stages()
    assert len(stages) == 2
    for stage in (folder.warmup, *stages):
        assert read_record(stage.validation, Validation).pooled.completions
    assert all(len(stage.read_steps()) == 2 for stage in stages)
    assert folder.warmup.next.exists(), "the first stage is redesigned, too"
