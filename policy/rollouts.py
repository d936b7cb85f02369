"""Sampled answers to boards, several each: what a policy could learn from them."""

from collections.abc import Callable

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from core_jax.groups import Group
from core_jax.types import Failure
from policy.boards import Task
from policy.evaluation import answer_length
from policy.rewards import RewardSettings, judge, rewards
from policy.sampling import answer_tasks


def roll_out(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    tasks: list[Task],
    group: int,
    reward: RewardSettings,
    *,
    horizon: int,
    seed: int,
    temperature: float = 1.0,
    on_progress: Callable[[int], None] = lambda answers: None,
) -> tuple[list[Group], int]:
    """`group` sampled answers to each task, judged as in training: the groups in order, and the tokens generated."""
    asked = [task for task in tasks for _ in range(group)]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        answers = answer_tasks(
            model,
            tokenizer,
            asked,
            max_new_tokens=answer_length(horizon),
            temperature=temperature,
            on_progress=on_progress,
        )
    verdicts, moves = judge(asked, answers, horizon)
    valid = (np.asarray(verdicts.failure) == Failure.NONE).reshape(-1, group)
    earned = rewards(asked, verdicts, moves, reward).reshape(-1, group)
    groups = [Group.of(board, *row) for board, row in enumerate(zip(valid, earned, strict=True))]
    return groups, sum(token != tokenizer.pad_token_id for answer in answers for token in answer)
