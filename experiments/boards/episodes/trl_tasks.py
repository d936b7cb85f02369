"""The lake for TRL's own GRPO trainer: whole plans as answers to prompts, and play step by step by a tool.

For play, TRL makes an instance for each rollout, calls `reset` with the columns of the row, offers the public methods
to the model as tools, and asks `get_reward` once the rollout is over.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from datasets import Dataset

from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import read_last_words
from lakewright.experiments.boards.episodes.game import PlayedLake
from lakewright.experiments.boards.episodes.pools import board_pool, pool_rows
from lakewright.policy.codecs import encode_prompt
from lakewright.policy.tasks import task_of
from lakewright.policy.training import RewardSettings, reward_texts

HORIZON = 128  # steps; a longer answer is not a plan
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
    texts = [read_last_words(completion) for completion in completions]
    return reward_texts(tasks, texts, HORIZON, RewardSettings()).tolist()


PROMPT = """\
Bring {agents} agents across a frozen lake, each to its own goal, by calling the tool `move` again and again: it moves \
all of them by one step at the same time. No agent may leave the lake or move into a hole. After a step no two agents \
may be in the same cell, and in a step no two may exchange their cells. A step that breaks a rule ends the game. `.` \
is frozen ground and `H` a hole; agent 0 is at `a` and its goal is `A`, agent 1 is at `b` and its goal is `B`, and so \
on. You have {limit} steps.

"""


class LakePlay:
    """Boards to play on. options: as `PoolOptions`. train_dataset: `prompt`, a conversation, and `board`, a number."""

    def __init__(self, **options: Any) -> None:
        self._pool = board_pool(**options)
        words = PROMPT.format(agents=self._pool.agents, limit=int(self._pool.params.step_limit))
        boards = range(self._pool.boards)
        self.train_dataset = Dataset.from_dict(
            {"prompt": [[{"role": "user", "content": words}] for _ in boards], "board": list(boards)}
        )

    def environment_factory(self) -> PlayedLake:
        """A new environment; all of them share the boards."""
        return PlayedLake(self._pool)
