"""Lessons for a language model as the engineer: questions of a form, with the answers of the rule or what answers earn.

A folder holds teaching.json, which lessons they are; state.safetensors, from which a killed training continues; losses
in losses.json, and the model in checkpoint/.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import listed, write_json
from lakewright.engineer.cells import Knob
from lakewright.engineer.environment import Environment
from lakewright.engineer.reading import (
    BEGUN,
    FORMS,
    KINDS,
    RULES,
    Form,
    PairKind,
    choose_word,
    draw_question,
    encode_changes,
    make_steps,
    map_signs,
    measure_delta,
    write_decision,
    write_question,
)
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.jobs.resumable.claims import Claim
from lakewright.policy.codecs import TextSettings
from lakewright.policy.inference import Message, common_prefix, json_prompt
from lakewright.policy.models import compute_in_bfloat16, save_checkpoint
from lakewright.policy.play import DrawnTasks
from lakewright.policy.text_play import play_texts
from lakewright.policy.training import Loss, WarmupSettings, choice_odds, plan_loss, warm_up

TokenExample = tuple[list[int], list[int]]
Goal = Literal["rule", "worth"]
CHECKPOINT, STATE, LOSSES = "checkpoint", "state.safetensors", "losses.json"


class Teaching(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """teaching.json: the lessons and the training.

    model, form, environment: names. space: the signature of the environment's space. columns: the columns that a form
    of one decision asks about; if empty, all. strata: the most strata of a design. lessons: the number of different
    lessons. steps, batch, rate: settings of AdamW. bf16: whether it computes in bfloat16. seed: the seed of everything
    random. goal: to answer like the rule, or to raise the worth of the answers.
    """

    format: int
    model: str
    form: str
    environment: str
    space: str
    columns: list[str]
    strata: int
    lessons: int
    steps: int
    batch: int
    rate: float
    bf16: bool
    seed: int
    goal: Goal = "rule"

    def __post_init__(self) -> None:
        for name in ("lessons", "steps", "batch"):
            if not 1 <= getattr(self, name) <= 10_000_000:
                raise InputError(f"--{name} is {getattr(self, name)}; choose 1 or more")
        if not 0 < self.rate <= 1:
            raise InputError(f"--rate is {self.rate:g}; choose more than 0, at most 1")


CLAIM = Claim("taught engineer", "teaching.json", Teaching, 1, "lakewright engineer teach")


def teach_reader(
    folder: Path,
    work: Teaching,
    environment: Environment,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    on_step: Callable[[int, float], object] = lambda step, loss: None,
    clock: Callable[[], float] = time.monotonic,
) -> Path:
    """Trains a model on the lessons, and returns the folder of the checkpoint.

    Args:
        folder: the folder of the work, where a killed training continues.
        work: the lessons and the training.
        environment: the lessons' environment.
        model, tokenizer: trained in place.
        on_step: gets each step and its loss, including the steps before a kill.
        clock: gives the time in seconds; the training is saved about once a minute.

    Raises InputError if the folder holds other work, or another process works there.
    """
    with CLAIM.hold_folder(folder, work):
        if (folder / CHECKPOINT).exists():
            return folder / CHECKPOINT
        model.get_input_embeddings().requires_grad_(False)
        if work.bf16:
            compute_in_bfloat16(model)
        settings = WarmupSettings(
            steps=work.steps,
            batch=work.batch,
            optimizer="adamw",
            matrix_rate=work.rate,
            other_rate=work.rate,
            decay=0.9,
            extra_share=1.0,
            augment=False,
        )
        play = play_texts(model, tokenizer, lambda problems, texts: [], ("wrong",), text=TextSettings())
        losses: list[float] = []

        def report(step: int, loss: float) -> None:
            losses.append(loss)
            on_step(step, loss)

        if work.goal == "worth":
            decisions = draw_decisions(work, environment, tokenizer)
            examples, loss = [(decision.prompt, [decision.more]) for decision in decisions], make_worth_loss(decisions)
        else:
            examples, loss = write_lessons(work, environment, tokenizer), plan_loss
        none = DrawnTasks[object](lambda first, count: [])
        taught = warm_up(model, play, none, examples, settings, work.seed, report, folder / STATE, clock, loss)
        with listed(folder / LOSSES):
            write_json(folder / LOSSES, losses)
        save_checkpoint(folder / CHECKPOINT, taught, tokenizer)
        (folder / STATE).unlink(missing_ok=True)
    return folder / CHECKPOINT


def write_lessons(work: Teaching, environment: Environment, tokenizer: PreTrainedTokenizerFast) -> list[TokenExample]:
    """The lessons as token ids: questions of the form, and answers of the rule with an end.

    They are drawn as the pairs of the test are, by another seed.
    """
    rng, form = np.random.default_rng([work.seed, 1]), FORMS[work.form]
    found: list[TokenExample] = []
    while len(found) < work.lessons:
        found += _write_question(KINDS[len(found) % len(KINDS)], form, work, environment, tokenizer, rng)
    return found


def _write_question(
    kind: PairKind,
    form: Form,
    work: Teaching,
    environment: Environment,
    tokenizer: PreTrainedTokenizerFast,
    rng: np.random.Generator,
) -> list[TokenExample]:
    """A lesson about a question, or nothing if the rule decides nothing.

    kind: what is shown. form, work, environment, tokenizer: see `write_lessons`. rng: consumed.
    """
    space = environment.space
    shown = draw_question(kind, environment, work.strata, rng).evidence
    design = shown.design
    delta = RULES[kind].make_delta(shown, design, space)
    if form.asks == "changes":
        messages, _ = write_question(form, shown, space)
        return [_encode_example(messages, "", encode_changes(delta, design, space), tokenizer)]
    columns = {column.name: column for column in _list_columns(work, space)}
    decided = [(place, sign) for place, sign in map_signs(delta, design, space).items() if sign and place[1] in columns]
    wanted = 1 if rng.random() < 0.5 else -1  # as many of each answer
    decided = [(place, sign) for place, sign in decided if sign == wanted]
    if not decided:
        return []
    (stratum, name), sign = decided[int(rng.integers(len(decided)))]
    messages = write_decision(form, shown, (stratum, columns[name]), space)
    return [_encode_example(messages, BEGUN, choose_word(sign) + '"}', tokenizer)]


def _list_columns(work: Teaching, space: DesignSpace) -> list[Knob]:
    """The columns of which a form of one decision asks."""
    return [column for column in space.columns if not work.columns or column.name in work.columns]


class LessonDecision(NamedTuple):
    """A question for more or less of a column of a stratum.

    prompt: token ids. more, less: the tokens in which the two answers differ. gain: how much more the design is worth
    after a step of more than after one of less, by the forecast that the figures come from.
    """

    prompt: list[int]
    more: int
    less: int
    gain: float


def draw_decisions(
    work: Teaching, environment: Environment, tokenizer: PreTrainedTokenizerFast
) -> list[LessonDecision]:
    """Questions of a form of one decision, with the worth of their answers.

    Args:
        work: the form, and the number of questions.
        environment: the questions' environment.
        tokenizer: the prompts' tokenizer.

    They are drawn like the pairs of the test, with another seed; stratum and column are random.
    """
    rng, form, space = np.random.default_rng([work.seed, 1]), FORMS[work.form], environment.space
    columns, decisions = _list_columns(work, space), list[LessonDecision]()
    more, less = (_encode(choose_word(sign), tokenizer) for sign in (1, -1))
    shared = common_prefix([more, less])
    for number in range(work.lessons):
        shown, truth = draw_question(KINDS[number % len(KINDS)], environment, work.strata, rng)
        strata = space.sort_strata(shown.design.strata)
        stratum, column = strata[int(rng.integers(len(strata)))], columns[int(rng.integers(len(columns)))]
        steps = [make_steps({(stratum, column.name): sign}, form.name, space) for sign in (1, -1)]
        gains = [measure_delta(delta, shown.design, truth, environment) for delta in steps]
        messages = write_decision(form, shown, (stratum, column), space)
        prompt = [*json_prompt(tokenizer, messages), *_encode(BEGUN, tokenizer), *more[:shared]]
        decisions.append(LessonDecision(prompt, more[shared], less[shared], gains[0] - gains[1]))
    return decisions


def make_worth_loss(decisions: Sequence[LessonDecision]) -> Loss:
    """The loss that raises what the answers of a model are worth, the mean over a batch.

    decisions: all that batches are drawn from.

    The loss of a question is -p g: p is the probability of `more` among the two answers, g how much it gains beyond
    `less`. Its gradient is REINFORCE's (Williams 1992), summed over both answers instead of drawing one. g is the
    mean over questions with the same prompt, as many short ones are the same, divided by the mean size of all gains.
    """
    gains: dict[tuple[int, ...], list[float]] = {}
    for decision in decisions:
        gains.setdefault(tuple(decision.prompt), []).append(decision.gain)
    unit = float(np.mean([abs(decision.gain) for decision in decisions])) or 1.0
    mean_gains = {prompt: float(np.mean(known)) / unit for prompt, known in gains.items()}
    more, less = decisions[0].more, decisions[0].less

    def loss_of(model: PreTrainedModel, batch: Sequence[TokenExample], pad: int) -> torch.Tensor:
        prompts = [prompt for prompt, _ in batch]
        odds = choice_odds(model, prompts, more, less, pad)
        gained = torch.tensor([mean_gains[tuple(prompt)] for prompt in prompts], device=odds.device)
        return -(odds.float().sigmoid() * gained).mean()

    return loss_of


def _encode_example(
    messages: Sequence[Message], begun: str, answer: str, tokenizer: PreTrainedTokenizerFast
) -> TokenExample:
    prompt = [*json_prompt(tokenizer, messages), *_encode(begun, tokenizer)]
    return prompt, [*_encode(answer, tokenizer), int(tokenizer.eos_token_id or 0)]


def _encode(text: str, tokenizer: PreTrainedTokenizerFast) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def check_teachable(form: Form, goal: Goal = "rule") -> None:
    """Raises InputError if a form has no lessons with a goal."""
    if form.asks == "delta" or form.examples:
        names = ", ".join(one.name for one in FORMS.values() if one.asks != "delta" and not one.examples)
        raise InputError(f"--form {form.name} has no lessons; choose from {names}")
    if goal == "worth" and form.asks != "one":
        names = ", ".join(one.name for one in FORMS.values() if one.asks == "one" and not one.examples)
        raise InputError(f"--goal worth: {form.name} asks for more than one decision; choose --form from {names}")
