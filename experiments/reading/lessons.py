"""Lessons for a language model as the engineer: questions of a form with the answers of the rule, and the training.

A folder holds teaching.json, which lessons they are; state.safetensors, from which a killed training continues; losses
in losses.json, and the model in checkpoint/.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import listed, write_json
from lakewright.engineer.environment import Environment
from lakewright.engineer.reading import (
    BEGUN,
    FORMS,
    KINDS,
    RULES,
    Form,
    Kind,
    choose_word,
    draw_question,
    encode_changes,
    list_signs,
    write_decision,
    write_question,
)
from lakewright.experiments.resumable.claims import Claim
from lakewright.policy.codecs import TextSettings
from lakewright.policy.inference import Message, json_prompt
from lakewright.policy.models import compute_in_bfloat16, save_checkpoint
from lakewright.policy.play import DrawnTasks
from lakewright.policy.text_play import play_texts
from lakewright.policy.training import WarmupSettings, warm_up

Example = tuple[list[int], list[int]]
CHECKPOINT, STATE, LOSSES = "checkpoint", "state.safetensors", "losses.json"


class Teaching(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """teaching.json: the lessons and the training.

    model, form, environment: names. space: the signature of the environment's. columns: of which a form of one decision
    asks; without any all. strata: of a design, at most. lessons: how many different ones. steps, batch, rate: of the
    training by AdamW. bf16: whether it computes in bfloat16. seed: of all chance.
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
        folder: of the work, where a killed training continues.
        work: the lessons and the training.
        environment: theirs.
        model, tokenizer: trained in place.
        on_step: gets each step and its loss, those before a kill too.
        clock: by which the training is saved about once a minute.

    Raises InputError where the folder holds other work, or another process works there.
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

        examples = write_lessons(work, environment, tokenizer)
        none = DrawnTasks[object](lambda first, count: [])
        taught = warm_up(model, play, none, examples, settings, work.seed, report, folder / STATE, clock)
        with listed(folder / LOSSES):
            write_json(folder / LOSSES, losses)
        save_checkpoint(folder / CHECKPOINT, taught, tokenizer)
        (folder / STATE).unlink(missing_ok=True)
    return folder / CHECKPOINT


def write_lessons(work: Teaching, environment: Environment, tokenizer: PreTrainedTokenizerFast) -> list[Example]:
    """The lessons as token ids: questions of the form, and answers of the rule with an end.

    They are drawn as the pairs of the test are, by another seed.
    """
    rng, form = np.random.default_rng([work.seed, 1]), FORMS[work.form]
    found: list[Example] = []
    while len(found) < work.lessons:
        found += _write_question(KINDS[len(found) % len(KINDS)], form, work, environment, tokenizer, rng)
    return found


def _write_question(
    kind: Kind,
    form: Form,
    work: Teaching,
    environment: Environment,
    tokenizer: PreTrainedTokenizerFast,
    rng: np.random.Generator,
) -> list[Example]:
    """A lesson about a question, none where the rule decides nothing.

    kind: what is shown. form, work, environment, tokenizer: as for `write_lessons`. rng: consumed.
    """
    space = environment.space
    shown = draw_question(kind, environment, work.strata, rng)
    design = shown.design
    delta = RULES[kind].make_delta(shown, design, space)
    if form.asks == "changes":
        messages, _ = write_question(form, shown, space)
        return [_encode_example(messages, "", encode_changes(delta, design, space), tokenizer)]
    columns = {column.name: column for column in space.columns if not work.columns or column.name in work.columns}
    decided = [
        (place, sign) for place, sign in list_signs(delta, design, space).items() if sign and place[1] in columns
    ]
    wanted = 1 if rng.random() < 0.5 else -1  # as many of each answer
    decided = [(place, sign) for place, sign in decided if sign == wanted]
    if not decided:
        return []
    (stratum, name), sign = decided[int(rng.integers(len(decided)))]
    messages = write_decision(form, shown, (stratum, columns[name]), space)
    return [_encode_example(messages, BEGUN, choose_word(sign) + '"}', tokenizer)]


def _encode_example(
    messages: Sequence[Message], begun: str, answer: str, tokenizer: PreTrainedTokenizerFast
) -> Example:
    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    return [*json_prompt(tokenizer, messages), *encode(begun)], [*encode(answer), int(tokenizer.eos_token_id or 0)]


def check_teachable(form: Form) -> None:
    """Raises InputError where a form has no lessons."""
    if form.asks == "delta" or form.examples:
        names = ", ".join(one.name for one in FORMS.values() if one.asks != "delta" and not one.examples)
        raise InputError(f"--form {form.name} has no lessons; choose from {names}")
