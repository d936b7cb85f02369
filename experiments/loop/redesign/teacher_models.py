"""The models behind teachers: the current checkpoint, that of the warm-up, or one behind a server."""

import functools
import importlib.util
import os
from collections.abc import Callable
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.engineer.proposal import AnswerTokens
from lakewright.engineer.teachers import MODELS, Allowed, Ask, Message, Reply, SampledAnswers, Tools
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.redesign.engineer_formats import JsonFormat, TokenFormat, answers_in_tokens
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import load_engineer
from lakewright.experiments.resumable.spending import Spending, ask_server
from lakewright.policy.inference import (
    KEYS,
    SchemaSettings,
    answer_in_json,
    answer_under_grammar,
    json_prompt,
)
from lakewright.policy.models import answers_only_plans

Policy = tuple[PreTrainedModel, PreTrainedTokenizerFast]


def make_tools(settings: RunSettings, folder: RunFolder, stage: Stage, recorded: bool) -> Tools:
    """Everything that the teacher of a run needs after `stage`. Raises InputError if its model cannot be asked at all.

    Args:
        settings, folder: the run.
        stage: the last one that ended.
        recorded: whether requests to a server are charged to the run.
    """
    name = settings.asked
    if name not in MODELS:
        return Tools(settings.evidence)
    if name == "endpoint":
        ask = _ask_endpoint(settings, Spending(folder.spending), recorded)
        return Tools(settings.evidence, ask=ask, proposals=settings.engineer.proposals, inline=True)
    return _ask_checkpoint(settings, folder.warmup if name == "base" else stage)


def check_askable(settings: RunSettings) -> None:
    """Raises InputError if the teacher cannot be asked: a server without a key, or a mask without its package."""
    teachers = (settings.teacher, settings.teacher_options.get("match"))
    if settings.answers_in_json and not importlib.util.find_spec("llguidance"):
        raise InputError(
            f"teacher {settings.teacher} answers in JSON under a mask, which needs llguidance; "
            "pip install 'lakewright[structured]'"
        )
    if "endpoint" in teachers and settings.engineer.key and not any(os.environ.get(name) for name in KEYS):
        raise InputError(
            f"teacher endpoint: no key in the environment; set {KEYS[0]}, or engineer.key=false for a server without"
        )


def _ask_checkpoint(settings: RunSettings, policy: Stage) -> Tools:
    """A checkpoint answers in tokens where its vocabulary has the engineer's words, else in language."""
    load = functools.cache(lambda: load_engineer(settings, policy.checkpoint))
    model, tokenizer = load()
    if answers_only_plans(model):
        raise InputError(
            f"teacher {settings.teacher} asks {policy.checkpoint}, a board network, which has no answers except plans; "
            "choose a teacher that asks no checkpoint"
        )
    trained = settings.asked == "self_trained"
    if answers_in_tokens(tokenizer):
        if trained:
            return Tools(settings.evidence, sample=functools.partial(_sample_tokens, settings, load))
        return Tools(settings.evidence, decode=lambda prompt, allowed: answer_under_grammar(*load(), prompt, allowed))
    if trained:
        return Tools(settings.evidence, sample_json=functools.partial(_sample_json, settings, load))
    chosen = settings.engineer
    how = SchemaSettings(chosen.reasoning, chosen.answer, chosen.temperature)

    def ask(messages: list[Message], schema: dict, seed: int) -> Reply:
        return Reply(*answer_in_json(*load(), messages, schema, how, seed))

    return Tools(settings.evidence, ask=ask, proposals=chosen.proposals)


def _sample_tokens(
    settings: RunSettings, load: Callable[[], Policy], prompt: list[str], allowed: Allowed, seed: int
) -> list[list[str]]:
    model, tokenizer = load()
    return TokenFormat(settings, tokenizer, allowed).sample_answers(model, prompt, seed)


def _sample_json(
    settings: RunSettings, load: Callable[[], Policy], messages: list[Message], schema: dict[str, Any], seed: int
) -> SampledAnswers:
    model, tokenizer = load()
    form = JsonFormat(settings, tokenizer, schema)
    prompt = tokenizer.convert_ids_to_tokens(json_prompt(tokenizer, messages))
    answers = form.sample_answers(model, prompt, seed)
    return SampledAnswers(AnswerTokens(prompt, answers), form.decode_answers(answers))


def _ask_endpoint(settings: RunSettings, spending: Spending, recorded: bool) -> Ask:
    chosen = settings.engineer.endpoint
    assert chosen
    check_askable(settings)
    return ask_server(chosen, settings.engineer.temperature, spending, recorded=recorded)
