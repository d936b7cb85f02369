"""The warm-up of a run: supervised learning of certified plans, before the first stage."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.config import with_teams
from lakewright.core_jax.generator import generate_in_turn
from lakewright.core_jax.rows import Row
from lakewright.engineer.evidence import ENGINEER_TOKENS
from lakewright.engineer.lessons import examined, synthetic_examples
from lakewright.experiments.loop.records import Excluded, Stage, write
from lakewright.experiments.loop.settings import RunSettings, seed_for
from lakewright.experiments.loop.training.excluded_boards import excluded_boards
from lakewright.experiments.loop.training.policies import load_policy
from lakewright.experiments.loop.training.validation import validate
from lakewright.experiments.resumable.line_logs import line_log
from lakewright.experiments.runtime.free_cores import FreeCores
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TextCodec, build_tokenizer, codec_for, token_ids
from lakewright.policy.inference import answer_under_grammar, check_speech
from lakewright.policy.models import answers_only_plans, build_model, resolve_shape, save_checkpoint
from lakewright.policy.tasks import Task, task_of
from lakewright.policy.training import BoardStream, kept_place, tasks_of, with_hole_ratios
from lakewright.policy.training import warm_up as learn_plans

SYNTHETIC = 4000  # made-up evidence with the rule's answers, from which it learns the engineer's part
QUESTIONS = 50  # of the examination afterwards


def warm_up(settings: RunSettings, warmup: Stage, held_out: list[Row]) -> None:
    """Trains the first policy and validates it.

    It learns certified plans and, in the codec of tokens, the form of an engineer's answer.
    """
    if not warmup.checkpoint.exists():
        model, tokenizer = _first_model(settings)
        codec = codec_for(settings.codec, tokenizer, settings.text)
        if isinstance(codec, TextCodec):
            check_speech(settings.start, model, codec, task_of(held_out[0]))
        if settings.warmup.steps:
            model = _learned(settings, warmup, model, tokenizer)
        else:
            with line_log(warmup.train_log):
                pass
        save_checkpoint(warmup.checkpoint, model, tokenizer)
    if not warmup.validation.exists():
        validate(settings, warmup, held_out)


def _first_model(settings: RunSettings) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model that the run starts from, or one of random weights."""
    if settings.start:
        return load_policy(settings, settings.start)
    words = ENGINEER_TOKENS if resolve_shape(settings.model).architecture == "qwen3" else ()
    tokenizer = build_tokenizer(words)
    return build_model(settings.model, tokenizer, seed_for(settings.seed, "model"), settings.device), tokenizer


def _learned(
    settings: RunSettings, warmup: Stage, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> PreTrainedModel:
    play = BoardPlay(codec_for(settings.codec, tokenizer, settings.text), settings.horizon, settings.reward)
    answers_engineer = settings.codec == "tokens" and not answers_only_plans(model)
    taught = _lessons(settings, "synthetic evidence", SYNTHETIC) if answers_engineer else []
    extra = [(token_ids(tokenizer, prompt), token_ids(tokenizer, answer)) for prompt, answer in taught]
    cores, kept = FreeCores(), warmup.scratch / "training.safetensors"
    place = kept_place(kept)
    with (
        _boards(settings, place.boards) as tasks,
        progress("warm-up", settings.warmup.steps, "steps") as bar,
        line_log(warmup.train_log) as log,
    ):

        def on_step(step: int, loss: float) -> None:
            bar.update()
            log({"step": step, "loss": loss})
            cores.adapt()

        seed = seed_for(settings.seed, "warm-up")
        model = learn_plans(model, play, tasks, extra, settings.warmup, seed, on_step, kept)
        if settings.exclude and isinstance(tasks, BoardStream):
            write(warmup.excluded, Excluded(place.replaced + tasks.replaced))
    if taught:
        questions = _lessons(settings, "examination", QUESTIONS)
        answer = functools.partial(answer_under_grammar, model, tokenizer)
        write(warmup.examination, examined(questions, settings.env, answer))
    return model


@contextmanager
def _boards(settings: RunSettings, first: int) -> Iterator[list[Task] | BoardStream]:
    """A fixed set, or boards drawn while training, from the place `first` in their stream."""
    seed, boards = seed_for(settings.seed, "warm-up boards"), settings.warmup.boards
    if settings.warmup.fresh:
        configs = with_hole_ratios(settings.warmup_env, settings.warmup.hole_ratios)
        excluded = excluded_boards(settings)
        with BoardStream(configs, seed, first, teams=settings.teams, excluded=excluded) as stream:
            yield stream
    else:
        with progress("warm-up boards", boards, "boards") as bar:
            made = generate_in_turn(with_teams(settings.warmup_env, settings.teams), seed, boards, bar.update)
        yield tasks_of(*made)


def _lessons(settings: RunSettings, purpose: str, count: int) -> list[tuple[list[str], list[str]]]:
    rng = np.random.default_rng(seed_for(settings.seed, purpose))
    return synthetic_examples(count, settings.env, settings.stages, rng, settings.taught)
