"""Our warm-up and TRL's SFTTrainer: what each achieves with the tiny model in the same processor time.

lakewright bench --warmups

Both begin with the same weights and see plans of the same boards. Ours turns and mirrors boards, trains the matrices
by Muon and keeps averaged weights; SFTTrainer is given the same batch size, AdamW, a cosine, batches of like length.
Processor seconds, which other work on the machine disturbs less than seconds on the wall, decide how long each runs.
"""

import copy
import functools
import tempfile
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import numpy as np

from lakewright.core_jax.generator import generate
from lakewright.core_jax.types import Failure
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.bench.timing import wall_and_processor
from lakewright.experiments.loop.settings import load_settings, seed_for
from lakewright.experiments.runtime.library_setup import prepare_training

SECONDS = 150.0  # of the processor, for each
TRIAL_STEPS = 30  # by which it is found out how many steps that is
HELD_OUT = 400  # boards of each size
RATES = (1e-3, 3e-3)  # of AdamW in SFTTrainer


Training: TypeAlias = Callable[[], Any]  # gives the trained model


class Trained(msgspec.Struct, frozen=True):
    """What a trainer made in so many seconds of the processor. valid: the share of held-out boards, greedy plans."""

    trainer: str
    steps: int
    seconds: float
    valid: float


def measure() -> list[Trained]:
    """Trains, and lets each model plan for the same held-out boards."""
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.codecs import TokensCodec, build_tokenizer
    from lakewright.policy.evaluation import evaluate
    from lakewright.policy.models import build_model
    from lakewright.policy.training import tasks_of, warm_up

    prepare_training()
    run = load_settings("cpu", [])
    tokenizer = build_tokenizer()
    play = BoardPlay(TokensCodec(tokenizer), run.horizon, run.reward)
    first = build_model(run.model, tokenizer, seed_for(0, "bench model"))
    tasks = tasks_of(generate(run.warmup_env, seed_for(0, "bench boards"), run.warmup.boards))
    held_out = tasks_of(generate(run.env, seed_for(0, "bench held-out boards"), HELD_OUT * len(run.env.sizes)))

    def ours(model: Any, steps: int) -> Training:
        settings = msgspec.structs.replace(run.warmup, steps=steps)
        return functools.partial(warm_up, model, play, tasks, [], settings, seed=0)

    trainers: dict[str, Callable[[Any, int], Training]] = {"ours": ours}
    sft = functools.partial(_sft, tokenizer, tasks, run.warmup.batch)
    trainers |= {f"SFTTrainer, AdamW at {rate:g}": functools.partial(sft, rate) for rate in RATES}
    found = []
    for name, train in trainers.items():
        _, trial, _ = wall_and_processor(train(copy.deepcopy(first), TRIAL_STEPS))
        steps = max(1, round(SECONDS / trial * TRIAL_STEPS))
        _, seconds, model = wall_and_processor(train(copy.deepcopy(first), steps))
        verdicts, _ = evaluate(model, play, held_out)
        found.append(Trained(name, steps, seconds, float(np.mean(verdicts.failure == Failure.NONE))))
    return found


def table(found: list[Trained]) -> str:
    """The benchmark as Markdown."""
    rows = [(row.trainer, f"{row.steps:,}", f"{row.seconds:.0f}", f"{row.valid:.1%}") for row in found]
    return "\n".join(format_markdown(("trainer", "steps", "seconds of the processor", "valid"), rows))


def _sft(tokenizer: Any, tasks: list, batch: int, rate: float, model: Any, steps: int) -> Training:
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import SFTConfig, SFTTrainer

    from lakewright.policy.codecs import TokensCodec

    codec = TokensCodec(tokenizer)
    examples = [(codec.encode_prompt(task.board), codec.encode_answer(task.board, task.moves)) for task in tasks]
    rows = [
        {"input_ids": prompt + answer, "completion_mask": [0] * len(prompt) + [1] * len(answer)}
        for prompt, answer in examples
    ]
    config = SFTConfig(
        output_dir=tempfile.mkdtemp(),  # nothing is saved there
        max_steps=steps,
        per_device_train_batch_size=batch,
        learning_rate=rate,
        lr_scheduler_type="cosine",
        warmup_steps=min(50, steps // 2),
        train_sampling_strategy="group_by_length",
        completion_only_loss=True,
        max_length=None,
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = SFTTrainer(model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tokenizer)
    trainer.remove_callback(PrinterCallback)

    def train() -> Any:
        trainer.train()
        return trainer.model

    return train
