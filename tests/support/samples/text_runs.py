"""Tiny closed loops on problems in text that several tests share: sums of numbers of one and two digits."""

import functools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from lakewright.engineer.samplers import SamplerSettings
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.settings.run_settings import RunSettings, load_settings
from lakewright.policy.training import GrpoSettings
from tests.support.processes.commands import HOUSE, elsewhere
from tests.support.samples.tiny_runs import CHECKPOINT, files, run_loop

ADDITION = HOUSE / "docs" / "examples" / "addition.py"
ROW = {"share": 0.5, "terms": 2, "carry": 0.5}
OVERRIDES = (
    "engineer.asked_first=false",  # it has tests of its own
    *("stages=2", "teacher=rules", "text.max_tokens=6", "warmup.steps=2", "warmup.batch=8", "validation.boards=1"),
    *(
        "model.hidden=32",
        "model.layers=1",
        "model.heads=2",
        "model.mlp=32",
        "trial.boards=8",
        "trial.share=0",
        "trial.samples=2",
    ),
    *("grpo.steps=1", "grpo.prompts=4", "grpo.group=2", "grpo.optimizer=adamw", "grpo.guided=false", "guard.widen=0.0"),
    *(f"design.{stratum}.{name}={value}" for stratum in (1, 2) for name, value in ROW.items()),
)
TEACHERS = ("rules", "difficulty", "self", "self_trained")
SAMPLERS = ("plr", "pcl", "vcrl", "sfl", "dapo", "domain_randomisation")
KINDS: dict[str, dict[str, Any]] = {
    **{name: {"teacher": name} for name in TEACHERS},
    **{f"{name}, untried": {"teacher": name, "trial": TrialSettings(enabled=False)} for name in TEACHERS},
    **{name: {"sampler": SamplerSettings(name)} for name in SAMPLERS},
    "fresh": {"grpo": GrpoSettings(steps=1, prompts=4, group=2, fresh=True)},
    "guided": {"grpo": GrpoSettings(steps=1, prompts=4, group=2, guided=True)},
}
QUICK = ("rules", "self_trained", "rules, untried", "plr", "fresh")
EACH_KIND = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.deep) for kind in KINDS]
TRAINED = {"train.jsonl", "plans.jsonl", "validation.json", "done.json", *(f"checkpoint/{name}" for name in CHECKPOINT)}
STAGE = TRAINED | {"env.json", "sampled.json", "groups.jsonl", "rollouts.jsonl", "problems.jsonl", "rollback.json"}
STAGE |= {"difficulty.json", "evidence.json", "proposal.json", "next.json"}
TEXT_FILES = {"config.json", "held_out.jsonl", *(f"warmup/{name}" for name in TRAINED)}
TEXT_FILES |= {f"stage_{number:02d}/{name}" for number in (0, 1) for name in STAGE}


def text_run(
    environment: object = f"{ADDITION}:Addition", overrides: Sequence[str] = (), **changes: Any
) -> RunSettings:
    """Two stages of half a second each. overrides, changes: of its settings."""
    settings = load_settings("text", [f"environment={environment}", *OVERRIDES, *overrides])
    return msgspec.structs.replace(settings, **changes)


@functools.cache
def finished_text(kind: str) -> RunFolder:
    """The finished run of a kind, to be looked at and copied."""
    run = RunFolder(elsewhere() / "text runs" / kind)
    run_loop(text_run(**KINDS[kind]), run)
    return run


def timeless(run: RunFolder) -> dict[str, bytes]:
    """The bytes of all files of a run but its report and those that hold what the clock says."""
    clock = ("done.json", "train.jsonl", "report.html")
    names = (name for name in files(run.folder) if not name.endswith(clock))
    return {name: (run.folder / name).read_bytes() for name in names}
