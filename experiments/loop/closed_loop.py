"""The closed loop: training on problems, validation, evidence for the engineer, and its redesign of the problems.

Every step writes a file and is skipped if that file exists, so a run that was killed at any instant resumes there. A
finished stage is never touched again, and an interrupted one repeats at most one step.
"""

import importlib.metadata
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import update_listing
from lakewright.engineer.problems import Problem
from lakewright.experiments.jobs.runtime.progress_bars import print_on_terminal
from lakewright.experiments.loop.records.history import describe_redesign, describe_stage, read_examination
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Done, Launched, find_record, write_record
from lakewright.experiments.loop.records.token_budget import count_left, explain_spent
from lakewright.experiments.loop.redesign.run_engineer import RunEngineer
from lakewright.experiments.loop.redesign.teacher_models import check_askable
from lakewright.experiments.loop.settings.memory_remedies import list_remedies
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.stage_problems import make_problems
from lakewright.experiments.loop.training.stage_training import train_stage
from lakewright.experiments.loop.training.stage_validation import validate_stage
from lakewright.experiments.loop.training.trainee import Trainee, make_trainee
from lakewright.experiments.loop.training.warmup import read_recorded_evidence, warm_up_run
from lakewright.policy.inference import naming_full_memory
from lakewright.policy.models import explain_fallback

RECORDED_VERSIONS = ("lakewright", "jax", "torch", "transformers", "trl")


def run(settings: RunSettings, folder: RunFolder, on_stage: Callable[[], object] = lambda: None) -> None:
    """Runs or resumes the whole loop in `folder`.

    Raises InputError if the folder holds another run, or the budget is spent before the first stage.

    on_stage: called once the warm-up is finished, and after each stage.
    """
    check_askable(settings)
    if reason := explain_fallback(settings.device):
        print_on_terminal(reason)
    trainee = make_trainee(settings)
    if not folder.warmup.done.exists():
        read_recorded_evidence(trainee)  # what is missing is refused before a file is written
    folder.open(settings)
    held_out = prepare_run(trainee, folder)
    engineer = RunEngineer(trainee, folder, held_out)
    if settings.engineer.asked_first:
        _redesign_first_stage(trainee, folder, engineer)
    on_stage()
    for number in range(settings.stages):
        stage = folder.stage(number)
        if not stage.done.exists():
            if count_left(folder, number) <= 0:
                if reason := explain_spent(settings.budget, folder):
                    raise InputError(f"{folder.folder}: {reason}")
                print_on_terminal(f"the budget of {settings.budget} tokens is spent after {number} stages")
                return
            print_on_terminal(f"stage_{number:02d}, {number + 1} of {settings.stages}, teacher {settings.teacher}")
            begun = _read_clocks()
            _run_stage(trainee, folder, number, held_out)
            _redesign_after_stage(trainee, engineer, number)
            _mark_done(folder, stage, begun)
            for line in describe_stage(folder, number, trainee.environment.space):
                print_on_terminal(f"  {line}")
            on_stage()
        update_listing(stage.done)


def prepare_run(trainee: Trainee, folder: RunFolder) -> list[Problem]:
    """The held-out set, which is returned, and the warm-up of an opened folder."""
    settings, held_out = trainee.settings, trainee.hold_out(folder)
    if not folder.warmup.done.exists():
        print_on_terminal(f"warm-up: {settings.warmup.steps} steps on {trainee.environment.space.words.references}")
        begun = _read_clocks()
        warm_up_run(trainee, folder.warmup, held_out)
        _mark_done(folder, folder.warmup, begun)
        if learned := read_examination(folder):
            print_on_terminal(f"  {learned.summary()}")
    update_listing(folder.warmup.done)
    return held_out


def _redesign_first_stage(trainee: Trainee, folder: RunFolder, engineer: RunEngineer) -> None:
    """Decides the design of the first stage, from the held-out answers after the warm-up; saves it beside these."""
    warmup = folder.warmup
    if not warmup.next.exists():
        _write_once(warmup.design_file, lambda: trainee.start, trainee)
        _redesign_after_stage(trainee, engineer, -1)
        for line in describe_redesign(warmup, trainee.environment.space):
            print_on_terminal(f"  {line}")


def _redesign_after_stage(trainee: Trainee, engineer: RunEngineer, number: int) -> None:
    """The policy answers as the engineer, trains as one, and is rolled out in trials: each may fill a GPU."""
    after = "the warm-up" if number < 0 else f"stage {number}"
    with naming_full_memory(f"redesign after {after}", lambda: list_remedies(trainee.settings, "engineer", "trial")):
        engineer.redesign(number)


def _run_stage(trainee: Trainee, folder: RunFolder, number: int, held_out: list[Problem]) -> None:
    settings, stage, before = trainee.settings, folder.stage(number), folder.stage(number - 1)
    decided = number or settings.engineer.asked_first
    _write_once(stage.design_file, lambda: before.next_design() if decided else trainee.start, trainee)
    policy = folder.find_standing(number - 1)
    if not settings.grpo.fresh and not trainee.problems_file(stage).exists():
        with naming_full_memory(f"problems of stage {number}", lambda: list_remedies(settings, "scores")):
            make_problems(trainee, stage, policy, before, number, count_left(folder, number))
    if not stage.checkpoint.exists():
        train_stage(trainee, stage, policy, number, count_left(folder, number + 1))
    if not stage.validation.exists():
        with naming_full_memory(f"validation of stage {number}", lambda: list_remedies(settings, "validation")):
            validate_stage(trainee, stage, held_out)


def _write_once(path: Path, make: Callable[[], msgspec.Struct | None], trainee: Trainee) -> None:
    """Makes and writes a record that is not there yet, if there is something to record."""
    if not path.exists() and (record := make()) is not None:
        trainee.write_record(path, record)


def _read_clocks() -> tuple[float, float]:
    """Seconds by the clock, and of the processor: for this process and its children that have ended."""
    spent = os.times()
    return time.monotonic(), spent.user + spent.system + spent.children_user + spent.children_system


def _mark_done(folder: RunFolder, stage: Stage, begun: tuple[float, float]) -> None:
    launched = find_record(stage.launched, Launched)
    shutil.rmtree(stage.scratch, ignore_errors=True)
    versions = {name: importlib.metadata.version(name) for name in RECORDED_VERSIONS}
    clock, processor = (now - then for now, then in zip(_read_clocks(), begun, strict=True))
    write_record(stage.done, Done(clock, versions, processor, launched.times - 1 if launched else 0))
    folder.link_best()
