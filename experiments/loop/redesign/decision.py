"""What a stage's evidence leads to: the teacher is asked, the guard judges, and what is proposed is tried."""

from typing import Any

import jax
import msgspec

from lakewright.engineer.design import Delta
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.guard import judge_delta
from lakewright.engineer.proposal import Teacher
from lakewright.engineer.steps import Next, list_rivals, negotiate, try_rivals
from lakewright.engineer.teachers import make_teacher
from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records import (
    Decision,
    EngineerTraining,
    Rollback,
    RunFolder,
    Stage,
    chosen,
    gather,
    read,
)
from lakewright.experiments.loop.redesign.difficulty import read_forecast, trust_region
from lakewright.experiments.loop.redesign.rollback import find_return
from lakewright.experiments.loop.redesign.teacher_models import tools_of
from lakewright.experiments.loop.redesign.trial import start_trial
from lakewright.experiments.loop.settings import RunSettings, seed_for
from lakewright.experiments.loop.training import Trainee


def gather_evidence(trainee: Trainee, folder: RunFolder, number: int) -> Evidence:
    """All that is known after stage `number`."""
    stages = [folder.stage(earlier) for earlier in range(number + 1)]
    return gather(trainee.settings, trainee.environment, stages, read_forecast(stages[-1]))


def decide(trainee: Trainee, folder: RunFolder, number: int) -> Decision:
    """Asks the teacher, lets the guard judge; what cannot be used keeps the design and is recorded."""
    settings, environment, stage = trainee.settings, trainee.environment, folder.stage(number)
    teacher = teacher_of(settings, folder, stage, _state_before(folder, number), recorded=True)
    key = jax.random.key(seed_for(settings.seed, f"stage {number} teacher"))
    guard = trust_region(settings, environment, stage)
    count = settings.engineer.proposals
    *refused, last = negotiate(teacher, stage.read_evidence(), stage.design(), environment, key, guard, count)
    return Decision(settings.teacher, last.proposal, last.verdict, teacher.state_dict(), refused)


def what_follows(trainee: Trainee, folder: RunFolder, number: int) -> Next:
    """What the stage after `number` is drawn from: what was decided, or what served before a stage rolled back."""
    stage = folder.stage(number)
    reasons = [_describe_fall(rollback)] if (rollback := stage.rolled_back()) else []
    if before := find_return(folder, number):
        return Next(before, "rollback", reasons)
    again = trainee.settings.engineer.asked_again and stage.engineer.exists() and not stage.trial.exists()
    following = _ask_again(trainee, stage) if again else chosen(stage)
    return msgspec.structs.replace(following, reasons=[*reasons, *following.reasons])


def _ask_again(trainee: Trainee, stage: Stage) -> Next:
    """The first answer of the engineer after its training that can be used; without one, what it answered before."""
    environment, current = trainee.environment, stage.design()
    guard = trust_region(trainee.settings, environment, stage)
    answers = read(stage.engineer, EngineerTraining).groups[-1].read(environment.space)
    verdicts = (judge_delta(current, delta, environment, guard) for delta in answers if isinstance(delta, Delta))
    if verdict := next((verdict for verdict in verdicts if verdict.status != "refused"), None):
        reasons = [f"asked again after its training: {verdict.summary()}"]
        return Next(verdict.design, "current" if verdict.design == current else "proposal", reasons)
    before = chosen(stage)
    return msgspec.structs.replace(before, reasons=["after its training no answer can be used", *before.reasons])


def _describe_fall(rollback: Rollback) -> str:
    found = rollback.comparison
    return f"rolled back to {rollback.against}: {found.lost} lost, {found.gained} gained, p {found.p_value:.2g}"


def _state_before(folder: RunFolder, number: int) -> dict[str, Any]:
    """The state in which the teacher was left when last asked before stage `number`; empty if it never was."""
    for earlier in reversed(range(number)):
        if folder.stage(earlier).proposal.exists():
            return read(folder.stage(earlier).proposal, Decision).teacher_state
    return {}


def teacher_of(
    settings: RunSettings, folder: RunFolder, stage: Stage, state: dict[str, Any] | None, *, recorded: bool = False
) -> Teacher:
    """The teacher of a run after `stage`, in the state that it was left in; as new where that is empty.

    settings, folder: the run. stage: the last that ended. state: of the teacher. recorded: whether the run pays for
    what is asked of a server.
    """
    teacher = make_teacher(settings.teacher, tools_of(settings, folder, stage, recorded), settings.teacher_options)
    if state:
        teacher.load_state_dict(state)
    return teacher


def try_proposals(trainee: Trainee, folder: RunFolder, number: int) -> Trial | None:
    """The trial of what was proposed after a stage against its design; None where nothing differs from it."""
    stage, environment = folder.stage(number), trainee.environment
    decision, current = read(stage.proposal, Decision), stage.design()
    guard = trust_region(trainee.settings, environment, stage)
    others = _list_candidates(trainee, stage, decision)
    rivals = list_rivals(decision.verdict, others, current, environment, guard)
    work = start_trial(trainee, folder.standing(number), f"stage {number} trial")
    return try_rivals(work, rivals, current, read_forecast(stage), decision.verdict.design)


def _list_candidates(trainee: Trainee, stage: Stage, decision: Decision) -> list[Delta]:
    """What else is tried with the proposal: its own candidates, and what the trained engineer proposes now."""
    if not stage.engineer.exists():
        return list(decision.proposal.candidates)
    proposed = read(stage.engineer, EngineerTraining).proposed(trainee.environment.space)
    return [delta for _, delta in proposed if isinstance(delta, Delta)]
