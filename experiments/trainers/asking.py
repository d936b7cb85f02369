"""Questions of a folder to the model that is its engineer: at a server, or through the trainer whose policy it is."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.engineer.environment import Environment
from lakewright.engineer.multi_turn import MultiTurnEnvironment
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.settings import find_unused_evidence
from lakewright.engineer.teachers import (
    MODELS,
    Ask,
    Message,
    Reply,
    Tools,
    UnansweredError,
    asks_model,
    check_teacher,
    follows_schedule,
)
from lakewright.engineer.trial import RollOut, check_rollouts
from lakewright.experiments.jobs.resumable.spending import Spending, ask_server
from lakewright.experiments.trainers.held_out_answers import BEFORE_TRAINING
from lakewright.experiments.trainers.pins import share_out
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.versions import FolderSettings, Setup

UNTRAINED = 999  # the turn of the answers before training, beyond those of a trial


def make_folder_tools(setup: Setup, path: Path, ask: Ask | None = None, unanswered: list[str] | None = None) -> Tools:
    """The tools of the teacher of a folder.

    Args:
        setup: the setup that the engineer was begun with.
        path: the folder.
        ask: asks the current policy.
        unanswered: gets the reason of each question without an answer.
    """
    settings, inline = setup.settings, False
    if setup.teacher != "self" and settings.endpoint:
        spending, inline = Spending(path / "spending.jsonl"), True
        ask = ask_server(settings.endpoint, settings.temperature, spending, recorded=True)
    asked = _note_unanswered(ask or _refuse_to_ask, [] if unanswered is None else unanswered)
    return Tools(settings.evidence, ask=asked, proposals=settings.proposals, inline=inline)


def answer_held_out(
    path: Path, environment: Environment, problems: Sequence[Problem], roll_out: RollOut, known: Collection[int]
) -> None:
    """Records an answer of the policy before its training to each held-out problem of a folder.

    Args:
        path: the folder.
        environment: the folder's environment.
        problems: all held-out problems. So whatever is known, each gets the same answer.
        roll_out: samples the policy.
        known: the places of the problems whose answers are recorded already.
    """
    groups, tokens = check_rollouts(roll_out(problems, 1, UNTRAINED), problems, 1)
    recorder = OutcomeRecorder(path, environment)
    for place, (problem, group) in enumerate(zip(problems, groups, strict=True)):
        if place in known:
            continue
        failure = "" if group.valid else max(group.failures, key=group.failures.__getitem__, default="")
        verdict, share = Verdict(group.valid == 1, group.reward, failure), share_out(tokens, place, len(problems))
        recorder.record(problem, [""], [verdict], split="held_out", tokens=[share], group=BEFORE_TRAINING, first=place)


def check_served_teacher(
    teacher: str,
    options: Mapping[str, Any],
    settings: FolderSettings,
    environment: Environment,
    *,
    held_out: int,
    rounds: int | None,
) -> None:
    """Raises InputError on a teacher without what it needs or with unknown options, and on settings without effect.

    Args:
        teacher, options: its name and its arguments.
        settings: the folder's settings.
        environment: the designs' environment.
        held_out: how many held-out problems there are.
        rounds: how many redesigns there will be, if that is known.
    """
    if rounds is None and follows_schedule(teacher, options):
        raise InputError(f"teacher {teacher} follows a schedule; give rounds (--rounds), the number of redesigns")
    if teacher in MODELS and teacher not in ("endpoint", "self"):
        raise InputError(
            f"teacher {teacher} asks a local checkpoint of a run; choose self, or serve the checkpoint for endpoint"
        )
    if teacher == "endpoint" and settings.endpoint is None:
        raise InputError("teacher endpoint has no server; give endpoint.url and endpoint.model")
    check_teacher(teacher, options, environment.space, settings.difficulty)
    if settings.rollouts and isinstance(environment, MultiTurnEnvironment):
        name = type(environment).__name__
        raise InputError(f"rollouts.url: a server plays no episodes, which {name} needs; let a trainer roll out")
    if unused := _find_unused(teacher, settings, held_out):
        raise InputError(f"settings: {unused}")


def _find_unused(teacher: str, settings: FolderSettings, held_out: int) -> str:
    """The line about a setting that would have no effect; empty if all have an effect."""
    usual, model = FolderSettings(), asks_model(teacher)
    if settings.endpoint and (teacher == "self" or not model):
        return f"endpoint is given, but teacher {teacher} asks no server; choose the teacher endpoint, or leave it out"
    if settings.temperature != usual.temperature and not settings.endpoint:
        return f"temperature is {settings.temperature:g}, but endpoint is missing; give endpoint.url, or leave it out"
    if settings.rollout_temperature != usual.rollout_temperature and not settings.rollouts:
        said = f"rollout_temperature is {settings.rollout_temperature:g}, but rollouts is missing"
        return f"{said}; give rollouts.url, or leave it out"
    if unused := find_unused_evidence(settings, teacher):
        return unused
    if settings.rollback != usual.rollback and not held_out:
        return "rollback compares answers to held-out problems, which are missing; give --held-out 200, or leave it out"
    return ""


def _note_unanswered(ask: Ask, unanswered: list[str]) -> Ask:
    def ask_and_note(messages: list[Message], schema: dict[str, Any], seed: int) -> Reply:
        try:
            return ask(messages, schema, seed)
        except UnansweredError as error:
            unanswered.append(str(error))
            raise

    return ask_and_note


def _refuse_to_ask(messages: list[Message], schema: dict[str, Any], seed: int) -> Reply:
    raise InputError(
        "teacher self is the policy under training, which only its trainer can ask: let the trainer decide, as "
        "EngineerTasks.attach does, or serve the checkpoint and begin with the teacher endpoint"
    )
