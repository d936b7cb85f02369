"""Tiny closed loops that several tests share, and what lies in their folders."""

import contextlib
import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lakewright.core_jax.support import LISTING
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.loop import closed_loop as loop
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import DecisionRecord, find_record, read_record
from lakewright.experiments.loop.redesign.run_engineer import RunEngineer
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training import policy_models, warmup
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.policy.models import load_checkpoint
from lakewright.policy.training import board_stream
from tests.support.boards.generated_rows import SMALL
from tests.support.models.tiny_policy import tiny_run
from tests.support.processes.commands import elsewhere

CHECKPOINT = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
TRAINED = {"train.jsonl", "plans.jsonl", "validation.json", "done.json"}
TRAINED |= {*(f"checkpoint/{name}" for name in CHECKPOINT)}
STAGE = TRAINED | {"env.json", "sampled.json", "groups.jsonl", "rollouts.jsonl", "boards.parquet"}
STAGE |= {"rollback.json", "evidence.json", "proposal.json", "next.json", "difficulty.json"}
FILES = {"config.json", "validation.parquet"}
FILES |= {"warmup/examination.json", *(f"warmup/{name}" for name in TRAINED)}
FILES |= {f"stage_{i:02d}/{name}" for i in (0, 1) for name in STAGE}
TRIED = {"stage_00/trial.json"}  # where a config was proposed that is not the current one
SYNTHETIC = 50
RULES = tiny_run(SMALL, teacher="rules")

State = dict[str, tuple[bytes, int]]


@contextlib.contextmanager
def quick() -> Iterator[None]:
    """Few made-up examples for the engineer, few boards ahead of training, and one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warmup, "SYNTHETIC", SYNTHETIC)
        patch.setattr(warmup, "QUESTIONS", 2)
        patch.setattr(board_stream, "AHEAD", 1)
        patch.setattr(board_stream, "CHUNK", 32)
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


def run_loop(settings: RunSettings, run: RunFolder) -> None:
    """The loop itself, quick."""
    with quick():
        loop.run(settings, run)


@functools.cache
def finished(teacher: str) -> RunFolder:
    """The finished run of a teacher, to be looked at and copied."""
    run = RunFolder(elsewhere() / "runs" / teacher)
    run_loop(tiny_run(teacher=teacher), run)
    return run


def before_the_first_decision(folder: RunFolder) -> RunFolder:
    """A copy of a finished run, back where stage 0 had its evidence and no proposal."""
    shutil.copytree(finished("fixed").folder, folder.folder)
    forget(folder.stage(0))
    return folder


def forget(stage: Stage, *, proposal: bool = True) -> None:
    """Takes away what was decided after a stage. proposal: that, too."""
    for path in (stage.trial, stage.next, stage.done, *([stage.proposal] if proposal else [])):
        path.unlink(missing_ok=True)


def redesign_again(settings: RunSettings, run: RunFolder, number: int, *, proposal: bool = True) -> Any:
    """Decides once more after a stage, without a trial. proposal: whether the teacher is asked once more, too."""
    forget(run.stage(number), proposal=proposal)
    made = make_trainee(msgspec.structs.replace(settings, trial=TrialSettings(enabled=False)))
    RunEngineer(made, run, made.hold_out(run)).redesign(number)
    return find_record(run.stage(number).proposal, DecisionRecord)


def watch_loading(patch: pytest.MonkeyPatch) -> list[str]:
    """The stages whose checkpoints are loaded from now on, in turn."""
    loaded = []

    def load(folder, *how):
        loaded.append(folder.parent.name)
        return load_checkpoint(folder, *how)

    patch.setattr(policy_models, "load_checkpoint", load)
    return loaded


def files(folder: Path) -> set[str]:
    """All files below a folder, except the lock and the lists of digests, which differ with the clock."""
    names = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    names = {name for name in names if not name.endswith(LISTING)}
    return {name for name in names if not name.startswith("best/")} - {".lock"}  # `best` is a link to a checkpoint


def state(folder: Path) -> State:
    """Bytes and time of every file."""
    return {name: ((folder / name).read_bytes(), (folder / name).stat().st_mtime_ns) for name in files(folder)}


def decision(run: RunFolder, number: int) -> DecisionRecord:
    """What was decided after a stage."""
    return read_record(run.stage(number).proposal, DecisionRecord)
