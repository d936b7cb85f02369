"""Decisions after a stage: the teacher's proposal, the rollback, and the design of the next stage."""

from typing import Any

import msgspec

from lakewright.core_jax.support import derive_seed
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.proposal import Teacher
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.rollback import compare_answers
from lakewright.engineer.steps import Next
from lakewright.engineer.teachers import make_teacher
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage, choose_next
from lakewright.experiments.loop.records.stage_records import (
    Decision,
    EngineerTraining,
    Rollback,
    Validation,
    find_record,
    read_record,
)
from lakewright.experiments.loop.redesign.stage_engineer import make_engineer, read_forecast
from lakewright.experiments.loop.redesign.teacher_models import make_tools
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import Trainee


def make_decision(trainee: Trainee, folder: RunFolder, number: int) -> Decision:
    """Asks the teacher and validates its proposal; one that cannot be used is recorded, and the design stays."""
    settings, environment, stage = trainee.settings, trainee.environment, folder.stage(number)
    teacher = load_teacher(settings, folder, stage, _read_state_before(folder, number), recorded=True)
    key = make_key(derive_seed(settings.seed, f"stage {number} teacher"))
    engineer = make_engineer(settings, environment, stage, teacher)
    *refused, last = engineer.propose(stage.read_evidence(), read_forecast(stage), key)
    return Decision(settings.teacher, last.proposal, last.verdict, teacher.state_dict(), refused)


def decide_next_stage(trainee: Trainee, folder: RunFolder, number: int) -> Next:
    """The design of the stage after `number`: the one decided on or, after a rollback, the one from before."""
    stage, reasons = folder.stage(number), list[str]()
    if rollback := stage.rolled_back():
        found = rollback.comparison
        reasons = [
            f"rolled back to {rollback.against}: {found.lost} lost, {found.gained} gained, p {found.p_value:.2g}"
        ]
    if before := find_return(folder, number):
        return Next(before, "rollback", reasons)
    again = trainee.settings.engineer.asked_again and stage.engineer.exists() and not stage.trial.exists()
    following = _ask_again(trainee, stage) if again else choose_next(stage)
    return msgspec.structs.replace(following, reasons=[*reasons, *following.reasons])


def _ask_again(trainee: Trainee, stage: Stage) -> Next:
    """The first answer of the engineer after its training that can be used; without one, what it answered before."""
    engineer, known = make_engineer(trainee.settings, trainee.environment, stage), read_forecast(stage)
    answers = read_record(stage.engineer, EngineerTraining).groups[-1].read_deltas(engineer.space)
    verdicts = (engineer.judge_delta(delta, known) for delta in answers if isinstance(delta, Delta))
    if verdict := next((verdict for verdict in verdicts if verdict.status != "refused"), None):
        reasons = [f"asked again after its training: {verdict.summary()}"]
        return Next(verdict.design, "current" if verdict.design == engineer.design else "proposal", reasons)
    before = choose_next(stage)
    return msgspec.structs.replace(before, reasons=["after its training no answer can be used", *before.reasons])


def _read_state_before(folder: RunFolder, number: int) -> dict[str, Any]:
    """The state in which the teacher was left when last asked before stage `number`; empty if it never was."""
    decisions = (find_record(folder.stage(earlier).proposal, Decision) for earlier in reversed(range(-1, number)))
    return next((decision.teacher_state for decision in decisions if decision), {})


def load_teacher(
    settings: RunSettings, folder: RunFolder, stage: Stage, state: dict[str, Any] | None, *, recorded: bool = False
) -> Teacher:
    """The teacher of a run after `stage`, in the given state; in its first state if that is empty.

    Args:
        settings, folder: the run.
        stage: the last that ended.
        state: of the teacher.
        recorded: whether requests to a server are charged to the run.
    """
    teacher = make_teacher(settings.teacher, make_tools(settings, folder, stage, recorded), settings.teacher_options)
    if state:
        teacher.load_state_dict(state)
    return teacher


def compare_stages(settings: RunSettings, folder: RunFolder, number: int) -> Rollback:
    """The verdict on stage `number`: rolled back where its policy lost problems beyond what chance explains."""
    stage, before = folder.stage(number), folder.find_standing(number - 1)
    comparison = compare_answers(*(read_record(part.validation, Validation).answered for part in (before, stage)))
    back = comparison.p_value < settings.rollback.level
    weights = before if back and settings.rollback.weights else stage
    return Rollback(before.folder.name, comparison, back, weights.folder.name)


def find_return(folder: RunFolder, number: int) -> Design | None:
    """The earlier design that the run returns to after stage `number`; None where the teacher is asked instead.

    The teacher is asked after a stage that stands, and after one that has no other design to return to, such as the
    first: retraining on its own design would fail the same way.
    """
    stage = folder.stage(number)
    if not (rollback := stage.rolled_back()):
        return None
    before = find_design_before(folder, number, rollback)
    return before if before != stage.design() else None


def find_design_before(folder: RunFolder, number: int, rollback: Rollback) -> Design:
    """The design that a stage which is rolled back gives way to; the first, which has none before it, keeps its own.

    Where weights stay, a stage may be trained from one that was rolled back itself: its design is not returned to.
    """
    before = folder.find_stage(rollback.against)
    while before.env.exists() and (earlier := before.rolled_back()):
        before = folder.find_stage(earlier.against)
    return (before if before.env.exists() else folder.stage(number)).design()
