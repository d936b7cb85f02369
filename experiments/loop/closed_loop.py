"""The closed loop: train on problems, validate, show the engineer the evidence, train on what it asks for.

Every step leaves a file and is skipped where that file exists, so a run that was killed at any instant resumes where it
was: a finished stage is never touched again, and an interrupted one repeats at most one step.
"""

import importlib.metadata
import shutil
import time
from collections.abc import Callable

from lakewright.engineer.environment import Problem
from lakewright.experiments.loop.records import (
    Decision,
    Done,
    RunFolder,
    Stage,
    examination_of,
    left,
    read,
    spent,
    spent_on,
    write,
)
from lakewright.experiments.loop.redesign import (
    TRAINED,
    check_askable,
    compare,
    decide,
    find_return,
    forecast_after,
    gather_evidence,
    story_of,
    train_engineer,
    try_proposals,
    what_follows,
)
from lakewright.experiments.loop.settings import RunSettings
from lakewright.experiments.loop.training import Trainee, make_problems, make_trainee, train, warm_up
from lakewright.experiments.runtime.progress_bars import print_on_terminal

RECORDED_VERSIONS = ("lakewright", "jax", "torch", "transformers", "trl")


def run(settings: RunSettings, folder: RunFolder, on_stage: Callable[[], object] = lambda: None) -> None:
    """Runs or resumes the whole loop in `folder`. Raises InputError where the folder holds another run.

    on_stage: called once the warm-up is finished, and after each stage.
    """
    check_askable(settings)
    trainee = make_trainee(settings)
    folder.open(settings)
    held_out = prepare(trainee, folder)
    on_stage()
    for number in range(settings.stages):
        stage = folder.stage(number)
        if not stage.done.exists():
            if left(settings.budget, spent(folder, number)) <= 0:
                print_on_terminal(f"the budget of {settings.budget} tokens is spent after {number} stages")
                return
            print_on_terminal(f"stage {number + 1} of {settings.stages}, teacher {settings.teacher}")
            begun = time.monotonic()
            _run_stage(trainee, folder, number, held_out)
            _mark_done(folder, stage, begun)
            for line in story_of(folder, number, trainee.environment.space):
                print_on_terminal(f"  {line}")
            on_stage()


def prepare(trainee: Trainee, folder: RunFolder) -> list[Problem]:
    """The held-out set, which is returned, and the warm-up of an opened folder."""
    settings, held_out = trainee.settings, trainee.hold_out(folder)
    if not folder.warmup.done.exists():
        print_on_terminal(f"warm-up: {settings.warmup.steps} steps on {trainee.references}")
        begun = time.monotonic()
        warm_up(trainee, folder.warmup, held_out)
        _mark_done(folder, folder.warmup, begun)
        if learned := examination_of(folder):
            print_on_terminal(f"  {learned.summary()}")
    return held_out


def _run_stage(trainee: Trainee, folder: RunFolder, number: int, held_out: list[Problem]) -> None:
    settings, stage, lake = trainee.settings, folder.stage(number), trainee.lake
    if not stage.env.exists():
        write(stage.env, folder.stage(number - 1).next_design() if number else trainee.start, lake=lake)
    if not settings.grpo.fresh and not trainee.problems_file(stage).exists():
        before = folder.stage(number - 1) if number else None
        tokens = left(settings.budget, spent(folder, number))
        make_problems(trainee, stage, folder.standing(number - 1), before, number, tokens)
    if not stage.checkpoint.exists():
        tokens = left(settings.budget, spent(folder, number) + spent_on(stage))
        train(trainee, stage, folder.standing(number - 1), number, tokens)
    if not stage.validation.exists():
        trainee.validate(stage, held_out)
    if settings.rollback.enabled and not stage.rollback.exists():
        write(stage.rollback, compare(settings, folder, number))
    if not stage.difficulty.exists():
        write(stage.difficulty, forecast_after(settings, trainee.environment, folder, number), lake=lake)
    if not stage.evidence.exists():
        write(stage.evidence, gather_evidence(trainee, folder, number), lake=lake)
    if not find_return(folder, number):
        _redesign(trainee, folder, number)
    if not stage.next.exists():
        write(stage.next, what_follows(trainee, folder, number), lake=lake)


def _redesign(trainee: Trainee, folder: RunFolder, number: int) -> None:
    settings, stage = trainee.settings, folder.stage(number)
    if not stage.proposal.exists():
        write(stage.proposal, decide(trainee, folder, number), lake=trainee.lake)
    stands = folder.standing(number).folder == stage.folder  # else training it further would be lost
    to_train = settings.teacher == TRAINED and stands and not stage.engineer_checkpoint.exists()
    if to_train and _goes_on(settings, folder, number) and read(stage.proposal, Decision).proposal.tokens:
        train_engineer(trainee, folder, number)
    to_try = settings.trial.enabled and not stage.trial.exists() and _goes_on(settings, folder, number)
    if to_try and (trial := try_proposals(trainee, folder, number)):
        write(stage.trial, trial, lake=trainee.lake)


def _goes_on(settings: RunSettings, folder: RunFolder, number: int) -> bool:
    """Whether another stage follows: otherwise no proposal needs to be tried."""
    return number + 1 < settings.stages and left(settings.budget, spent(folder, number + 1)) > 0


def _mark_done(folder: RunFolder, stage: Stage, begun: float) -> None:
    shutil.rmtree(stage.scratch, ignore_errors=True)
    versions = {name: importlib.metadata.version(name) for name in RECORDED_VERSIONS}
    write(stage.done, Done(time.monotonic() - begun, versions))
    folder.link_best()
