"""A checkpoint, asked for its greedy plan for one board."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from lakewright.core_jax.rows import Row, board_of, plan_of
from lakewright.core_jax.types import PAD, Failure
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.policy.tasks import Task

HORIZON = 64  # steps of the longest plan of the pretrained policy, as in `benchmark eval`


@dataclasses.dataclass(frozen=True)
class Asked:
    """A policy that was read: its codec, and the steps of the longest plan that it may answer with."""

    model: Any
    codec: Any
    horizon: int


def load_of_run(settings: RunSettings, checkpoint: Path) -> Asked:
    """A checkpoint of a run with these settings, on the CPU. Raises InputError where it cannot be read."""
    from lakewright.experiments.loop.training.trainee import load_policy
    from lakewright.experiments.runtime.library_setup import prepare_training
    from lakewright.policy.codecs import codec_for

    prepare_training()
    model, tokenizer = load_policy(settings, checkpoint, "cpu")
    return Asked(model, codec_for(settings.codec, tokenizer, settings.text), settings.horizon)


def load_pretrained() -> Asked:
    """The policy that comes with the package, on the CPU."""
    from lakewright.experiments.runtime.library_setup import prepare_training
    from lakewright.policy.codecs import TokensCodec
    from lakewright.policy.models import PRETRAINED, load_checkpoint

    prepare_training()
    model, tokenizer = load_checkpoint(PRETRAINED, device="cpu")
    return Asked(model, TokensCodec(tokenizer), HORIZON)


def greedy_plan(asked: Asked, row: Row) -> list[str] | None:
    """The moves that a policy answers with; None where its answer names no plan."""
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.evaluation import evaluate

    board = board_of(row)
    task = Task(board, 0, 0, False, np.full((row.agents, 1), PAD, np.int8), row.hole_ratio)
    verdicts, plans = evaluate(asked.model, BoardPlay(asked.codec, asked.horizon), [task])
    return None if int(verdicts.failure[0]) == Failure.PARSE_ERROR else plan_of(plans[0][: row.agents])
