"""The lake for TRL's own GRPO trainer: whole plans as answers to prompts, and play step by step by a tool.

For play, TRL makes an instance for each rollout, calls `reset` with the columns of the row, offers the public methods
to the model as tools, and asks `get_reward` once the rollout is over.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from datasets import Dataset

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import read_last_words
from lakewright.core_jax.terms import DOWN, FAILURE_NAMES, LEFT, RIGHT, UP, WAIT
from lakewright.experiments.boards.episodes.episode import BoardEpisode
from lakewright.experiments.boards.episodes.pools import BoardPool, board_pool, pool_rows
from lakewright.policy.codecs import encode_prompt
from lakewright.policy.tasks import task_of
from lakewright.policy.training import RewardSettings, reward_texts

WORDS = {"UP": UP, "DOWN": DOWN, "LEFT": LEFT, "RIGHT": RIGHT, "WAIT": WAIT}
HORIZON = 128  # steps; a longer answer is not a plan
Completion = str | list[dict[str, Any]]
PROMPT = """\
Bring {agents} agents across a frozen lake, each to its own goal, by calling the tool `move` again and again: it moves \
all of them by one step at the same time. No agent may leave the lake or move into a hole. After a step no two agents \
may be in the same cell, and in a step no two may exchange their cells. A step that breaks a rule ends the game. `.` \
is frozen ground and `H` a hole; agent 0 is at `a` and its goal is `A`, agent 1 is at `b` and its goal is `B`, and so \
on. You have {limit} steps.

"""


class PlayedLake:
    """One episode after another. TRL takes the public methods, except `reset` and `get_reward`, for a model's tools."""

    def __init__(self, pool: BoardPool) -> None:
        self._episode, self._agents = BoardEpisode(pool, "ansi"), pool.agents
        self._reward, self._over = 0.0, True

    def reset(self, board: int, **_: Any) -> str:
        """Begins an episode on the board of this number and returns its picture."""
        self._episode.begin(board)
        self._reward, self._over = 0.0, False
        return str(self._episode.picture())

    def move(self, moves: list[str]) -> str:
        """
        Moves all agents by one step at the same time.

        Args:
            moves: One move for each agent, in order: UP, DOWN, LEFT, RIGHT or WAIT.

        Returns:
            The board after the step, or why the game is over.
        """
        if self._over:
            raise InputError("the game is over; call no more tools")
        _, reward, terminated, truncated, info = self._episode.move(self._read(moves))
        self._reward, self._over = reward, terminated or truncated
        picture = str(self._episode.picture())
        if reward:
            return f"{picture}All agents are on their goals. The game is won."
        if terminated:
            return f"{picture}Agent {int(info['agent'])}: {FAILURE_NAMES[int(info['failure'])]}. The game is lost."
        if truncated:
            return f"{picture}No steps are left. The game is lost."
        return f"{picture}{int(np.sum(info['at_goal']))} of {self._agents} agents are on their goals."

    @property
    def over(self) -> bool:
        """Whether the game is won or lost, or has not begun."""
        return self._over

    def get_reward(self) -> float:
        """1 if all agents got home, else 0."""
        return self._reward

    def _read(self, moves: Any) -> np.ndarray:
        """The numbers of the moves, int32 [K]. Raises InputError if a model gives anything else."""
        if not isinstance(moves, list) or len(moves) != self._agents:
            raise InputError(f"moves is {moves!r:.60}; give a list of {self._agents} moves, one for each agent")
        if wrong := [move for move in moves if not isinstance(move, str) or move.upper() not in WORDS]:
            raise InputError(f"{wrong[0]!r:.40} is not a move; choose from {', '.join(WORDS)}")
        return np.array([WORDS[move.upper()] for move in moves], np.int32)


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
