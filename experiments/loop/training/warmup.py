"""The warm-up of a run: supervised learning of reference answers, before the first stage."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import derive_seed, write_json
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.lessons import examine_engineer, synthetic_examples, tells_worth
from lakewright.engineer.problems import Problem
from lakewright.experiments.jobs.resumable.journal import line_log
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import Excluded, Resumed, write_record
from lakewright.experiments.loop.settings.memory_remedies import list_remedies
from lakewright.experiments.loop.training.policy_models import FreeCores, free_memory
from lakewright.experiments.loop.training.stage_validation import validate_stage
from lakewright.experiments.loop.training.trainee import Trainee
from lakewright.policy.codecs import token_ids
from lakewright.policy.inference import answer_under_grammar, naming_full_memory
from lakewright.policy.models import answers_only_plans, save_checkpoint
from lakewright.policy.play import TaskStream
from lakewright.policy.training import load_place
from lakewright.policy.training import warm_up as learn_answers

SYNTHETIC = 4000  # random evidence with the rule's answers, from which it learns the engineer's part
QUESTIONS = 50  # of the examination afterwards


def warm_up_run(trainee: Trainee, warmup: Stage, held_out: Sequence[Problem]) -> None:
    """Trains the first policy and validates it.

    It learns reference answers and, if it answers in tokens, the form of an engineer's answer.
    """
    if not warmup.checkpoint.exists():
        with naming_full_memory("warm-up", lambda: list_remedies(trainee.settings, "warm-up")):
            _make_checkpoint(trainee, warmup, held_out)
        free_memory()
    if not warmup.validation.exists():
        with naming_full_memory("validation of the warm-up", lambda: list_remedies(trainee.settings, "validation")):
            validate_stage(trainee, warmup, held_out)


def _make_checkpoint(trainee: Trainee, warmup: Stage, held_out: Sequence[Problem]) -> None:
    """Makes the first policy; its memory is free again at the end because it is read once more to be validated."""
    model, tokenizer = trainee.load_start()
    trainee.check_start(model, tokenizer, held_out)
    if trainee.settings.warmup.steps:
        model = _learn_answers(trainee, warmup, model, tokenizer)
    else:
        with line_log(warmup.train_log):
            pass
    save_checkpoint(warmup.checkpoint, model, tokenizer)


def _learn_answers(
    trainee: Trainee, warmup: Stage, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> PreTrainedModel:
    settings, play = trainee.settings, trainee.make_play(model, tokenizer)
    teaches = settings.teaches_engineer and not answers_only_plans(model)  # a small model, which answers in tokens
    taught = _draw_lessons(trainee, "synthetic evidence", SYNTHETIC) if teaches else []
    extra = [(token_ids(tokenizer, prompt), token_ids(tokenizer, answer)) for prompt, answer in taught]
    cores, kept = FreeCores(), warmup.scratch / "training.safetensors"
    place = load_place(kept)
    write_json(warmup.resumed, Resumed(place.step, place.seconds))
    with (
        trainee.stream_references(place.boards) as tasks,
        progress("warm-up", settings.warmup.steps, "steps", settings.warmup.minutes, place.seconds) as bar,
        line_log(warmup.train_log, shown=True) as log,
    ):
        bar.initial = place.step  # these are reported once more

        def on_step(step: int, loss: float) -> None:
            bar.set_postfix(loss=f"{loss:.3f}")
            bar.update()
            log({"step": step, "loss": loss})
            cores.adapt()

        seed = derive_seed(settings.seed, "warm-up")
        model = learn_answers(model, play, tasks, extra, settings.warmup, seed, on_step, kept)
        if settings.exclude and isinstance(tasks, TaskStream):
            write_record(warmup.excluded, Excluded(place.replaced + tasks.replaced))
    if taught:
        questions = _draw_lessons(trainee, "examination", QUESTIONS)
        answer = functools.partial(answer_under_grammar, model, tokenizer)
        write_record(warmup.examination, examine_engineer(questions, trainee.start, trainee.environment.space, answer))
    return model


def _draw_lessons(trainee: Trainee, purpose: str, count: int) -> list[tuple[list[str], list[str]]]:
    settings = trainee.settings
    rng = np.random.default_rng(derive_seed(settings.seed, purpose))
    space, recorded = trainee.environment.space, read_recorded_evidence(trainee)
    return synthetic_examples(count, trainee.start, space, settings.stages, rng, settings.taught, recorded)


def read_recorded_evidence(trainee: Trainee) -> list[Evidence]:
    """The evidence of all stages in the folder of the lessons. Raises InputError if no lesson is of these strata."""
    folder = trainee.settings.lessons.recorded
    if not folder:
        return []
    files = sorted(Path(folder).glob("**/stage_*/evidence.json"))
    if not files:
        raise InputError(f"lessons.recorded: {folder} has no stage with evidence.json; give a folder of runs")
    recorded = [Stage(file.parent).read_evidence() for file in files]
    for file, evidence in zip(files, recorded, strict=True):
        if set(evidence.design.strata) != set(trainee.start.strata):
            raise InputError(f"lessons.recorded: {file} has other strata than this run; give runs with the same strata")
        if trainee.settings.lessons.rule == "gain" and not tells_worth(evidence):
            said = f"lessons.recorded: {file} has no worth of cells, which the rule gain follows"
            raise InputError(f"{said}; give runs of this version, or another lessons.rule")
    return recorded
