"""What is said about memory that is too small: settings that exist, are accepted, and lower the phase."""

import functools

import pytest

from lakewright.experiments.loop.host.estimate import Estimate, estimate_of
from lakewright.experiments.loop.settings.memory_remedies import PHASES, list_remedies
from lakewright.experiments.loop.settings.run_settings import RunSettings, load_settings
from tests.support.processes.commands import HOUSE

ADDITION = f"environment={HOUSE / 'docs' / 'examples' / 'addition.py'}:Addition"
RUNS: dict[str, tuple[str, ...]] = {
    "h100": (),
    "text": (ADDITION,),
    "qwen3-0.6b": (),
    "qwen3-4b": ("teacher=self_trained", "grpo.host.vllm=off"),
    "qwen3-4b-adapter": ("text.batch=64",),
}


@functools.cache
def load(preset: str, *overrides: str) -> RunSettings:
    return load_settings(preset, [*RUNS[preset], *overrides])


def find_bytes(found: Estimate, phase: str) -> int:
    return next(one.total for one in found.phases if one.name == phase)


@pytest.mark.parametrize("preset", ["text", "qwen3-4b"])
def test_each_value_that_is_suggested_lowers_the_estimate_of_its_phase(preset):
    before = estimate_of(load(preset))
    for phase in before.phases:
        suggested = list_remedies(load(preset), phase.name)
        assert suggested, phase.name
        for words in (remedy.split()[-1] for remedy in suggested if "=" in remedy):
            assert find_bytes(estimate_of(load(preset, words)), phase.name) < phase.total, (phase.name, words)


@pytest.mark.parametrize(
    ("preset", "phase", "expected"),
    [
        ("h100", "warm-up", ["set warmup.batch=128"]),
        ("h100", "scores", []),
        ("text", "validation", ["lower validation.boards"]),
        ("text", "sampling", ["lower grpo.prompts"]),
        ("text", "engineer", []),
        ("qwen3-0.6b", "validation", ["set text.batch=16"]),
        ("qwen3-4b-adapter", "validation", ["set text.batch=32"]),
        ("qwen3-4b-adapter", "warm-up", []),
        ("qwen3-4b", "engineer", ["train an adapter: grpo.host.lora.rank=32", "lower evidence.budget"]),
        ("qwen3-4b", "trial", ["lower trial.boards", "set text.batch=24"]),
    ],
)
def test_each_phase_has_its_own_settings(preset, phase, expected):
    assert list_remedies(load(preset), phase) == expected


def test_values_that_cannot_be_lower_are_not_suggested():
    least = ("text.batch=1", "grpo.host.micro_batch=1", "grpo.host.checkpointing=true", "trial.enabled=false")
    assert list_remedies(load("qwen3-4b-adapter", *least), *PHASES) == []
