"""A step of GRPO, with the prompt of a group read once and with one for every answer, as TRL does by itself.

lakewright bench --updates

Processor seconds, which other work on the machine disturbs less than seconds on the wall. Both begin with the same
weights, after a short warm-up, as an untrained model does not end its answers.
"""

import copy
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.generator import generate
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.bench.sampling import short_warmup
from lakewright.experiments.loop.settings import load_settings, seed_for
from lakewright.experiments.runtime.library_setup import prepare_training

STEPS = 9  # the first of them is not counted
OPTIMIZERS = ("adamw", "muon")


class Step(msgspec.Struct, frozen=True):
    """Processor seconds of a step of `boards` x `group` answers, sampling and verdicts included: median and range."""

    optimizer: str
    prompts: str
    boards: int
    group: int
    seconds: float
    lowest: float
    highest: float


def measure() -> list[Step]:
    """Trains for a few steps each way."""
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.codecs import TokensCodec
    from lakewright.policy.training import tasks_of, train_grpo

    prepare_training()
    run = load_settings("cpu", [])
    count = STEPS * run.grpo.prompts
    tasks = tasks_of(generate(run.env, seed_for(0, "bench boards"), count))
    first, tokenizer = short_warmup(tasks)
    play = BoardPlay(TokensCodec(tokenizer), run.horizon, run.reward)

    def measured(optimizer: Any, shared: bool) -> Step:
        times = [time.process_time()]
        given = {"steps": STEPS, "optimizer": optimizer, "share_prompts": shared}
        with tempfile.TemporaryDirectory() as scratch:
            train_grpo(
                *(copy.deepcopy(first), play, tasks, msgspec.structs.replace(run.grpo, **given)),
                seed=0,
                scratch=Path(scratch),
                on_step=lambda figures: times.append(time.process_time()),
            )
        took = [after - before for before, after in itertools.pairwise(times[1:])]
        how = "read once" if shared else "read for every answer"
        return Step(*(optimizer, how, run.grpo.prompts, run.grpo.group, statistics.median(took), min(took), max(took)))

    return [measured(optimizer, shared) for optimizer in OPTIMIZERS for shared in (False, True)]


def table(found: list[Step]) -> str:
    """The benchmark as Markdown."""
    rows = [
        (row.optimizer, row.prompts, f"{row.boards} x {row.group}", f"{row.seconds:.2f}", _range(row)) for row in found
    ]
    return "\n".join(format_markdown(("optimizer", "prompts", "answers", "processor seconds a step", "range"), rows))


def _range(row: Step) -> str:
    return f"{row.lowest:.2f} to {row.highest:.2f}"
