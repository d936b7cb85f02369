"""Sampled plans, several a board: what a policy could learn from them, and what that cost in tokens."""

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
    reward: RewardSettings,
    *,
    samples: int,
    horizon: int,
    temperature: float,
    seed: int,
    on_progress: Callable[[int], None] = lambda plans: None,
) -> tuple[list[Group], int]:
    """`samples` plans for each task: the groups in order, and the tokens of all answers, their ends included.

    Torch is seeded, and its state put back.
    """
    repeated = [task for task in tasks for _ in range(samples)]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        answers = answer_tasks(
            model,
            tokenizer,
            repeated,
            max_new_tokens=answer_length(horizon),
            temperature=temperature,
            on_progress=on_progress,
        )
    verdicts, moves = judge(repeated, answers, horizon)
    valid = (np.asarray(verdicts.failure) == Failure.NONE).reshape(len(tasks), samples)
    earned = rewards(repeated, verdicts, moves, reward).reshape(len(tasks), samples)
    groups = [Group.of(board, *row) for board, row in enumerate(zip(valid, earned, strict=True))]
    return groups, sum(_length(answer, tokenizer) for answer in answers)


def _length(answer: list[int], tokenizer: PreTrainedTokenizerFast) -> int:
    """Tokens up to the end, what a batch pads behind it left out."""
    end = tokenizer.eos_token_id
    return answer.index(end) + 1 if end in answer else len(answer)
