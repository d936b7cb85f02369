"""The closed loop: train on boards, validate, show the engineer the evidence, train on the boards it asks for.

Every step leaves a file and is skipped where that file is there, so a run killed at any instant goes on where it was: a
finished stage is never touched again, and an interrupted one repeats at most the step it was in.
"""

import importlib.metadata
import shutil
import time

import numpy as np

from core_jax.config import EnvConfig
from core_jax.errors import InputError
from core_jax.formats import Row
from core_jax.generator import check_reachable
from engineer.evidence import Evidence, Round, gather
from engineer.guard import GuardVerdict, judge
from engineer.teachers.base import Proposal
from engineer.teachers.registry import make_teacher
from engineer.teachers.self import Allowed
from experiments import steps
from experiments.progress import say
from experiments.runs import Decision, Done, RunFolder, Stage, Validation, read, write
from experiments.settings import RunSettings, seed_for
from policy.models import load_checkpoint
from policy.sampling import answer_under_grammar

RECORDED_VERSIONS = ("lakewright", "jax", "torch", "transformers", "trl")


def run(settings: RunSettings, folder: RunFolder) -> None:
    """Runs, or goes on with, the whole loop in `folder`. Raises InputError where the folder holds another run."""
    folder.open(settings)
    held_out = steps.held_out_set(settings, folder.validation)
    if not folder.warmup.done.exists():
        say(f"warm-up: {settings.warmup.steps} steps on certified plans")
        begun = time.monotonic()
        steps.warm_up(settings, folder.warmup, held_out)
        _mark_done(folder.warmup, begun)
    for number in range(settings.stages):
        stage = folder.stage(number)
        if not stage.done.exists():
            say(f"stage {number + 1} of {settings.stages}, teacher {settings.teacher}")
            begun = time.monotonic()
            _run_stage(settings, folder, number, held_out)
            _mark_done(stage, begun)


def _run_stage(settings: RunSettings, folder: RunFolder, number: int, held_out: list[Row]) -> None:
    stage = folder.stage(number)
    previous = folder.stage(number - 1) if number else folder.warmup
    if not stage.env.exists():
        write(stage.env, read(previous.proposal, Decision).verdict.config if number else settings.env)
    if not stage.boards.exists():
        steps.make_boards(settings, stage, number)
    if not stage.checkpoint.exists():
        steps.train(settings, stage, previous, number)
    if not stage.validation.exists():
        steps.validate(settings, stage, held_out)
    if not stage.evidence.exists():
        write(stage.evidence, _gather_evidence(settings, folder, number))
    if not stage.proposal.exists():
        write(stage.proposal, _decide(settings, folder, number))


def _gather_evidence(settings: RunSettings, folder: RunFolder, number: int) -> Evidence:
    rounds = [
        Round(stage.config(), read(stage.validation, Validation).sizes)
        for stage in (folder.stage(earlier) for earlier in range(number + 1))
    ]
    *past, now = rounds
    return gather(now.config, now.outcomes, past, number, settings.stages, settings.modules)


def _decide(settings: RunSettings, folder: RunFolder, number: int) -> Decision:
    """Asks the teacher, lets the guard judge; what cannot be used keeps the config and is recorded."""
    stage = folder.stage(number)
    evidence, config = read(stage.evidence, Evidence), stage.config()
    teacher = make_teacher(settings.teacher, lambda prompt, allowed: _ask_checkpoint(stage, prompt, allowed))
    if number:
        teacher.load_state_dict(read(folder.stage(number - 1).proposal, Decision).teacher_state)
    rng = np.random.default_rng(seed_for(settings.seed, f"stage {number} teacher"))
    proposal = teacher.propose(evidence, config, rng)
    return Decision(settings.teacher, proposal, _judged(settings, config, proposal), teacher.state_dict())


def _ask_checkpoint(stage: Stage, prompt: list[str], allowed: Allowed) -> list[str]:
    model, tokenizer = load_checkpoint(stage.checkpoint)
    return answer_under_grammar(model, tokenizer, prompt, allowed)


def _judged(settings: RunSettings, config: EnvConfig, proposal: Proposal) -> GuardVerdict:
    """The guard's verdict, and beyond its ranges the generator's: a config whose boards cannot be found is refused."""
    if proposal.delta is None:
        return GuardVerdict("refused", [proposal.error], config)
    verdict = judge(config, proposal.delta, settings.guard)
    try:
        check_reachable(verdict.config, seed_for(settings.seed, "reachable"))
    except InputError as error:
        return GuardVerdict("refused", [str(error)], config)
    return verdict


def _mark_done(stage: Stage, begun: float) -> None:
    shutil.rmtree(stage.scratch, ignore_errors=True)
    versions = {name: importlib.metadata.version(name) for name in RECORDED_VERSIONS}
    write(stage.done, Done(time.monotonic() - begun, versions))
