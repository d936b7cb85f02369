"""The closed loop: train on boards, validate, show the engineer the evidence, train on the boards it asks for.

Every step leaves a file and is skipped where that file is there, so a run killed at any instant goes on where it was: a
finished stage is never touched again, and an interrupted one repeats at most the step it was in.
"""

import importlib.metadata
import shutil
import time

import jax

from core_jax.decoding import read_raw
from core_jax.formats import Row
from core_jax.generator import can_draw
from engineer.evidence import Evidence, read_evidence
from engineer.negotiation import negotiate
from engineer.teachers.registry import Tools, make_teacher
from engineer.teachers.self import Allowed
from experiments import steps
from experiments.facts import gather
from experiments.progress import say
from experiments.runs import Decision, Done, RunFolder, Stage, read, write
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
    return gather(settings, [folder.stage(earlier) for earlier in range(number + 1)])


def _decide(settings: RunSettings, folder: RunFolder, number: int) -> Decision:
    """Asks the teacher, lets the guard judge; what cannot be used keeps the config and is recorded."""
    stage = folder.stage(number)
    evidence, config = read_evidence(read_raw(stage.evidence), str(stage.evidence)), stage.config()
    tools = Tools(settings.evidence, lambda prompt, allowed: _ask_checkpoint(stage, prompt, allowed))
    teacher = make_teacher(settings.teacher, tools, settings.teacher_options)
    if number:
        teacher.load_state_dict(read(folder.stage(number - 1).proposal, Decision).teacher_state)
    key = jax.random.key(seed_for(settings.seed, f"stage {number} teacher"))
    *refused, last = negotiate(teacher, evidence, config, key, settings.guard, can_draw)
    return Decision(settings.teacher, last.proposal, last.verdict, teacher.state_dict(), refused)


def _ask_checkpoint(stage: Stage, prompt: list[str], allowed: Allowed) -> list[str]:
    model, tokenizer = load_checkpoint(stage.checkpoint)
    return answer_under_grammar(model, tokenizer, prompt, allowed)


def _mark_done(stage: Stage, begun: float) -> None:
    shutil.rmtree(stage.scratch, ignore_errors=True)
    versions = {name: importlib.metadata.version(name) for name in RECORDED_VERSIONS}
    write(stage.done, Done(time.monotonic() - begun, versions))
