"""A run's checkpoint, asked for its greedy plan for one board."""

from typing import Any

import jax
import numpy as np

from core_jax.rows import Row, boards_of, plan_of
from core_jax.types import PAD, Failure
from experiments.loop.records import Stage
from experiments.loop.settings import RunSettings
from policy.tasks import Task


def load(settings: RunSettings, stage: Stage) -> tuple[Any, Any]:
    """The model and the tokenizer of a checkpoint, on the CPU. Raises InputError where they cannot be read."""
    from experiments.loop.training import load_policy
    from experiments.runtime import prepare_training

    prepare_training()
    return load_policy(settings, stage.checkpoint, "cpu")


def greedy_plan(settings: RunSettings, model: Any, tokenizer: Any, row: Row) -> list[str] | None:
    """The moves that the model answers with; None where its answer names no plan."""
    from policy.codecs import codec_for
    from policy.evaluation import evaluate

    codec = codec_for(settings.codec, tokenizer, settings.text)
    board = jax.tree.map(lambda field: field[0], boards_of([row]))
    task = Task(board, 0, 0, False, np.full((row.agents, 1), PAD, np.int8), row.hole_ratio)
    verdicts, plans = evaluate(model, tokenizer, [task], horizon=settings.horizon, codec=codec)
    return None if int(verdicts.failure[0]) == Failure.PARSE_ERROR else plan_of(plans[0][: row.agents])
