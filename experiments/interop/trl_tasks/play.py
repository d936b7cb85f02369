"""Play step by step: an environment for `trl.GRPOTrainer(environment_factory=...)`, whose only tool is a joint move.

TRL makes an instance for each rollout, calls `reset` with the columns of the row, offers the public methods to the
model as tools, and asks `get_reward` once the rollout is over.
"""

from typing import Any

from datasets import Dataset

from lakewright.experiments.interop.episodes.game import PlayedLake
from lakewright.experiments.interop.episodes.pools import board_pool

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
