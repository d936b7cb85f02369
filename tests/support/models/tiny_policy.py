"""The trainee in miniature: tasks, a model of a few thousand weights, and the settings of a run of seconds."""

import functools
from typing import Any

import msgspec
import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.types import PAD
from lakewright.engineer.evidence import vocabulary_of
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.environments.lake import lake_space
from lakewright.experiments.loop.settings.run_settings import RunSettings, ValidationSettings
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TokensCodec, build_tokenizer
from lakewright.policy.model_settings import ModelSettings
from lakewright.policy.models import build_model
from lakewright.policy.tasks import BoardTask, task_of
from lakewright.policy.training import GrpoSettings, WarmupSettings
from tests.support.boards.generated_rows import rows

logging.disable_progress_bar()

MODEL = ModelSettings(hidden=32, layers=1, heads=2, mlp=32)
HORIZON = 20
ENGINEER_TOKENS = vocabulary_of(lake_space()).tokens
ENV = EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 5: SizeConfig(0.5, 0.25, 0.5)})
SHORT = {
    "warmup": WarmupSettings(steps=2, boards=24, batch=8),
    "grpo": GrpoSettings(steps=1, prompts=4, group=2),
    "trial": TrialSettings(share=0, boards=8, samples=2),
    "validation": ValidationSettings(hole_ratios=(0.2,), wait_ratios=(0.5,), boards=4),
}


@functools.cache
def tasks() -> tuple[BoardTask, ...]:
    """The tasks of the sample boards, 3x3 and 5x5 mixed."""
    return tuple(task_of(row) for row in rows())


@functools.cache
def tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of boards and of the engineer."""
    return build_tokenizer(ENGINEER_TOKENS)


def board_play(horizon: int = HORIZON) -> BoardPlay:
    """Boards in tokens, with the usual rewards."""
    return BoardPlay(TokensCodec(tokenizer()), horizon)


def tiny_model(seed: int = 0) -> PreTrainedModel:
    """A model with random weights."""
    return build_model(MODEL, tokenizer(), seed)


def weights(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """A copy of a model's weights, by name."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def tiny_run(env: EnvConfig = ENV, **changes: Any) -> RunSettings:
    """Two stages of a second or less."""
    settings = RunSettings(**boards_as_settings(env), stages=2, horizon=8, model=MODEL, **SHORT)
    return msgspec.structs.replace(settings, **changes)


def boards_as_settings(env: EnvConfig) -> dict[str, Any]:
    """The settings of a run and its warm-up on boards of a config."""
    rows = msgspec.to_builtins(env.sizes, str_keys=True)
    return {"design": rows, "warmup_design": rows, "agents": env.agents, "warmup_agents": env.agents}


def padded(task: BoardTask, horizon: int = HORIZON) -> np.ndarray:
    """The plan of a task as int8 [K, horizon]."""
    moves = np.full((len(task.moves), horizon), PAD, np.int8)
    moves[:, : task.moves.shape[1]] = task.moves
    return moves
