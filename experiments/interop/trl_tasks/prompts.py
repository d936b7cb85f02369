"""Prompts as a plain data set, and the reward of whole plans, for `trl.GRPOTrainer`."""

from collections.abc import Callable
from typing import Any

import msgspec
from datasets import Dataset

from lakewright.core_jax.rows import Row
from lakewright.experiments.interop.episodes.pools import pool_rows
from lakewright.policy.codecs import encode_prompt
from lakewright.policy.tasks import task_of
from lakewright.policy.training import RewardSettings, reward_texts

HORIZON = 128  # steps; a longer answer is no plan
Completion = str | list[dict[str, Any]]


class LakePrompts:
    """Prompts and their reward.

    options: as `PoolOptions`. train_dataset: `prompt`, a conversation, and `row`, the board with its labels as JSON.
    """

    def __init__(self, **options: Any) -> None:
        rows = pool_rows(**options)
        self.train_dataset = Dataset.from_dict(
            {
                "prompt": [[{"role": "user", "content": encode_prompt(task_of(row).board)}] for row in rows],
                "row": [msgspec.json.encode(row).decode() for row in rows],
            }
        )
        self.reward_funcs: list[Callable[..., list[float]]] = [plan_reward]


def plan_reward(completions: list[Completion], row: list[str], **_: Any) -> list[float]:
    """The reward of each completion, 0 to 1, as in our own training: see `RewardSettings`.

    A completion is read strictly, as `policy.codecs.parse_answer` does, and played by the simulator. row: the column of
    the data set.
    """
    tasks = [task_of(msgspec.json.decode(line, type=Row)) for line in row]
    texts = [text if isinstance(text, str) else str(text[-1]["content"]) for text in completions]
    return reward_texts(tasks, texts, HORIZON, RewardSettings()).tolist()
