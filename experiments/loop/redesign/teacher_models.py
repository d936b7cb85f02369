"""The engineer of a run, its teacher, and the model behind that: a checkpoint of the run, or one behind a server."""

import functools
import importlib.util
import os
from collections.abc import Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem
from lakewright.engineer.proposal import AnswerTokens, Teacher
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.settings import EngineerSettings
from lakewright.engineer.teachers import (
    MODELS,
    Allowed,
    Message,
    Reply,
    SampledAnswers,
    Tools,
    check_teacher,
    make_teacher,
)
from lakewright.experiments.jobs.resumable.spending import Spending, ask_server
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.redesign.engineer_formats import JsonFormat, TokenFormat, answers_in_tokens
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.policy_models import choose_device, load_engineer, load_vllm
from lakewright.policy.inference import (
    KEYS,
    AnswerWriter,
    ModelAnswers,
    SchemaSettings,
    answer_in_json,
    answer_under_grammar,
    json_prompt,
)
from lakewright.policy.models import answers_only_plans


def make_run_tools(settings: RunSettings, folder: RunFolder, stage: Stage, recorded: bool) -> Tools:
    """Everything that the teacher of a run needs after `stage`. Raises InputError if its model cannot be asked at all.

    Args:
        settings, folder: the run's settings and folder.
        stage: the last finished stage.
        recorded: whether requests to a server are charged to the run.
    """
    name = settings.asked
    if name not in MODELS:
        return Tools(settings.evidence)
    if name != "endpoint":
        return _ask_checkpoint(settings, folder.warmup if name == "base" else stage)
    check_askable(settings)
    chosen = settings.engineer
    assert chosen.endpoint, "checked by the settings"
    ask = ask_server(chosen.endpoint, chosen.temperature, Spending(folder.spending), recorded=recorded)
    return Tools(settings.evidence, ask=ask, proposals=chosen.proposals, inline=True)


def make_engineer(
    settings: RunSettings,
    environment: Environment,
    design: Design,
    teacher: str | Teacher = "fixed",
    held_out: Sequence[Problem] | None = None,
) -> Engineer:
    """The engineer of a run.

    Args:
        settings, environment: the run's settings and environment.
        design: the design of a stage.
        teacher: the teacher to ask; for steps without a proposal any teacher will do.
        held_out: the problems that the policy is judged on.
    """
    chosen = EngineerSettings(
        evidence=settings.evidence,
        difficulty=msgspec.structs.replace(settings.difficulty, objective=settings.objective),
        guard=settings.guard,
        trial=settings.trial,
        rollback=settings.rollback,
        proposals=settings.engineer.proposals,
    )
    rounds = settings.stages + settings.engineer.asked_first
    return Engineer(environment, teacher, design, held_out=held_out, settings=chosen, rounds=rounds)


def load_teacher(
    settings: RunSettings, folder: RunFolder, stage: Stage, state: dict[str, Any] | None, *, recorded: bool = False
) -> Teacher:
    """The teacher of a run after `stage`, in the given state; in its first state if that is empty.

    Args:
        settings, folder: the run's settings and folder.
        stage: the last finished stage.
        state: the teacher's state.
        recorded: whether requests to a server are charged to the run.
    """
    teacher = make_teacher(
        settings.teacher, make_run_tools(settings, folder, stage, recorded), settings.teacher_options
    )
    if state:
        teacher.load_state_dict(state)
    return teacher


def check_askable(settings: RunSettings) -> None:
    """Raises InputError if the teacher cannot be asked: a server without a key, a mask without its package, or gain
    with a model without learning rates. The settings that the runs of a study share may have any teacher.
    """
    check_teacher(settings.teacher, settings.teacher_options, difficulty=settings.difficulty)
    if settings.answers_in_json and not importlib.util.find_spec("llguidance"):
        raise InputError(
            f"teacher {settings.teacher} answers in JSON under a mask, which needs llguidance; "
            "pip install 'lakewright[structured]'"
        )
    if settings.asked == "endpoint" and settings.engineer.key and not any(os.environ.get(name) for name in KEYS):
        raise InputError(
            f"teacher endpoint: no key in the environment; set {KEYS[0]}, or engineer.key=false if it needs no key"
        )


def _ask_checkpoint(settings: RunSettings, policy: Stage) -> Tools:
    """A checkpoint answers in tokens if its vocabulary has the engineer's words, else in language."""
    model, tokenizer = load_engineer(settings, policy.checkpoint, choose_device(settings))
    if answers_only_plans(model):
        raise InputError(
            f"teacher {settings.teacher} asks {policy.checkpoint}, a board network, which can only answer with plans; "
            "choose a teacher that isn't a checkpoint"
        )
    evidence, chosen = settings.evidence, settings.engineer
    writer: AnswerWriter = ModelAnswers(model, tokenizer)  # of all proposals, which answer one question
    if settings.text.decoder == "vllm":
        writer = load_vllm(settings, policy.checkpoint, model, tokenizer)

    def sample(prompt: list[str], allowed: Allowed, seed: int) -> list[list[str]]:
        return TokenFormat(settings, tokenizer, allowed).sample_answers(model, prompt, seed)

    def sample_json(messages: list[Message], schema: dict[str, Any], seed: int) -> SampledAnswers:
        form = JsonFormat(settings, tokenizer, schema)
        prompt = tokenizer.convert_ids_to_tokens(json_prompt(tokenizer, messages))
        answers = form.sample_answers(writer, prompt, seed)
        return SampledAnswers(AnswerTokens(prompt, answers), form.decode_answers(answers))

    def ask(messages: list[Message], schema: dict[str, Any], seed: int) -> Reply:
        sampling = SchemaSettings(chosen.reasoning, chosen.answer, chosen.temperature)
        return Reply(*answer_in_json(writer, tokenizer, messages, schema, sampling, seed))

    in_tokens = answers_in_tokens(tokenizer)
    if settings.asked == "self_trained":
        return Tools(evidence, sample=sample) if in_tokens else Tools(evidence, sample_json=sample_json)
    if in_tokens:
        return Tools(evidence, decode=functools.partial(answer_under_grammar, model, tokenizer))
    return Tools(evidence, ask=ask, proposals=chosen.proposals)
