"""What a stage's evidence leads to: the teacher is asked, the guard judges, and what is proposed is tried."""

from typing import Any

import jax
import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import can_draw_for
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.difficulty import Worth, worth_of
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.guard import judge
from lakewright.engineer.negotiation import negotiate
from lakewright.engineer.proposal import Teacher
from lakewright.engineer.teachers import make_teacher
from lakewright.engineer.trial import shortlisted
from lakewright.experiments.loop.records import (
    Decision,
    EngineerTraining,
    Next,
    Rollback,
    RunFolder,
    Stage,
    Trial,
    chosen,
    gather,
    read,
)
from lakewright.experiments.loop.redesign.difficulty import read_forecast, trust_region
from lakewright.experiments.loop.redesign.rollback import gone_back_to
from lakewright.experiments.loop.redesign.teacher_models import tools_of
from lakewright.experiments.loop.redesign.trial import try_beside_current
from lakewright.experiments.loop.settings import RunSettings, seed_for


def gather_evidence(settings: RunSettings, folder: RunFolder, number: int) -> Evidence:
    """All that is known after stage `number`."""
    stages = [folder.stage(earlier) for earlier in range(number + 1)]
    return gather(settings, stages, read_forecast(stages[-1]))


def decide(settings: RunSettings, folder: RunFolder, number: int) -> Decision:
    """Asks the teacher, lets the guard judge; what cannot be used keeps the config and is recorded."""
    stage = folder.stage(number)
    teacher = teacher_of(settings, folder, stage, _state_before(folder, number), recorded=True)
    key = jax.random.key(seed_for(settings.seed, f"stage {number} teacher"))
    evidence = stage.read_evidence()
    guard = trust_region(settings, stage)
    reachable, count = can_draw_for(settings.teams), settings.engineer.proposals
    *refused, last = negotiate(teacher, evidence, stage.config(), key, guard, reachable, count)
    return Decision(settings.teacher, last.proposal, last.verdict, teacher.state_dict(), refused)


def what_follows(settings: RunSettings, folder: RunFolder, number: int) -> Next:
    """What the stage after `number` is drawn from: what was decided, or what served before a stage taken back."""
    stage = folder.stage(number)
    reasons = [_fall(rollback)] if (rollback := stage.taken_back()) else []
    if before := gone_back_to(folder, number):
        return Next(before, "rollback", reasons)
    again = settings.engineer.asked_again and stage.engineer.exists() and not stage.trial.exists()
    following = _asked_again(settings, stage) if again else chosen(stage)
    return msgspec.structs.replace(following, reasons=[*reasons, *following.reasons])


def _asked_again(settings: RunSettings, stage: Stage) -> Next:
    """The first answer of the engineer after its training that can be used; without one, what it answered before."""
    current, guard, reachable = stage.config(), trust_region(settings, stage), can_draw_for(settings.teams)
    answers = read(stage.engineer, EngineerTraining).groups[-1].deltas
    verdicts = (judge(current, delta, guard, reachable) for delta in answers if isinstance(delta, ConfigDelta))
    if verdict := next((verdict for verdict in verdicts if verdict.status != "refused"), None):
        reasons = [f"asked again after its training: {verdict.summary()}"]
        return Next(verdict.config, "current" if verdict.config == current else "proposal", reasons)
    before = chosen(stage)
    return msgspec.structs.replace(before, reasons=["after its training no answer can be used", *before.reasons])


def _fall(rollback: Rollback) -> str:
    found = rollback.comparison
    return f"taken back to {rollback.against}: {found.lost} boards lost, {found.gained} gained, p {found.p_value:.2g}"


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

    recorded: whether the run pays for what is asked of a server.
    """
    teacher = make_teacher(settings.teacher, tools_of(settings, folder, stage, recorded), settings.teacher_options)
    if state:
        teacher.load_state_dict(state)
    return teacher


def try_proposals(settings: RunSettings, folder: RunFolder, number: int) -> Trial | None:
    """The trial of what was proposed after a stage against its config; None where nothing differs from it."""
    stage = folder.stage(number)
    decision, current, guard = read(stage.proposal, Decision), stage.config(), trust_region(settings, stage)
    reachable = can_draw_for(settings.teams)
    others = (judge(current, delta, guard, reachable).config for delta in _candidates(stage, decision))
    rivals: list[EnvConfig] = []
    for config in (decision.verdict.config, *others):
        if config != current and config not in rivals:
            rivals.append(config)
    if not rivals:
        return None
    rivals, priors = _shortlist(settings, stage, current, rivals)
    purpose = f"stage {number} trial"
    made = rivals.index(decision.verdict.config) if decision.verdict.config in rivals else None
    return try_beside_current(settings, folder.standing(number), current, rivals, priors, purpose, made)


def _candidates(stage: Stage, decision: Decision) -> list[ConfigDelta]:
    """What else is tried with the proposal: its own candidates, and what the trained engineer proposes now."""
    if not stage.engineer.exists():
        return list(decision.proposal.candidates)
    proposed = read(stage.engineer, EngineerTraining).proposed
    return [delta for _, delta in proposed if isinstance(delta, ConfigDelta)]


def _shortlist(
    settings: RunSettings, stage: Stage, current: EnvConfig, rivals: list[EnvConfig]
) -> tuple[list[EnvConfig], list[Worth]]:
    """The rivals that are tried, and what the model expects of them, where it has a say."""
    known, trial = read_forecast(stage), settings.trial
    if known is None or not trial.prior:
        return rivals[: trial.shortlist], []
    rivals = shortlisted(known.model, current, rivals, trial.shortlist, settings.teams)
    return rivals, [worth_of(known.model, config, current, settings.teams) for config in rivals]
