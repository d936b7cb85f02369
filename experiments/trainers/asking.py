"""Questions of a folder to the model that is its engineer: at a server, or through the trainer whose policy it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers import MODELS, Ask, Message, Reply, Tools, UnansweredError, check_teacher
from lakewright.experiments.resumable.spending import Spending, ask_server
from lakewright.experiments.trainers.versions import FolderSettings, Setup


def make_tools(setup: Setup, path: Path, ask: Ask | None = None, unanswered: list[str] | None = None) -> Tools:
    """The tools of the teacher of a folder.

    Args:
        setup: what the engineer was begun with.
        path: of the folder.
        ask: asks the present policy.
        unanswered: gets the reason of each question without an answer.
    """
    settings, inline = setup.settings, False
    if setup.teacher != "self" and settings.endpoint:
        spending, inline = Spending(path / "spending.jsonl"), True
        ask = ask_server(settings.endpoint, settings.temperature, spending, recorded=True)
    asked = _note_unanswered(ask or _refuse_to_ask, [] if unanswered is None else unanswered)
    return Tools(settings.evidence, ask=asked, proposals=settings.proposals, inline=inline)


def check_served_teacher(
    teacher: str, options: Mapping[str, Any], settings: FolderSettings, space: DesignSpace
) -> None:
    """Raises InputError where a folder cannot have a teacher: one without a server, or with unknown options.

    Args:
        teacher, options: its name and its arguments.
        settings: of the folder.
        space: of the designs.
    """
    if teacher in MODELS and teacher not in ("endpoint", "self"):
        raise InputError(
            f"teacher {teacher} asks a checkpoint of a run here; choose self, or serve the checkpoint for endpoint"
        )
    if teacher == "endpoint" and settings.endpoint is None:
        raise InputError("teacher endpoint has no server; give endpoint.url and endpoint.model")
    check_teacher(teacher, options, space)


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
