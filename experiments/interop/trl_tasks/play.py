"""Play step by step: an environment for `trl.GRPOTrainer(environment_factory=...)`, whose only tool is a joint move.

TRL makes an instance for each rollout, calls `reset` with the columns of the row, offers the public methods to the
model as tools, and asks `get_reward` once the rollout is over.
"""

from typing import Any

import numpy as np
from datasets import Dataset

from core_jax.errors import InputError
from core_jax.terms import DOWN, FAILURE_NAMES, LEFT, RIGHT, UP, WAIT
from experiments.interop.environments import BoardPool, Episode, board_pool

WORDS = {"UP": UP, "DOWN": DOWN, "LEFT": LEFT, "RIGHT": RIGHT, "WAIT": WAIT}
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

    def environment_factory(self) -> "PlayedLake":
        """A new environment; all of them share the boards."""
        return PlayedLake(self._pool)


class PlayedLake:
    """One episode. Its public methods, except `reset` and `get_reward`, are the tools of the model."""

    def __init__(self, pool: BoardPool) -> None:
        self._episode, self._agents = Episode(pool, "ansi"), pool.agents
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

    def get_reward(self) -> float:
        """1 if all agents got home, else 0."""
        return self._reward

    def _read(self, moves: Any) -> np.ndarray:
        """The numbers of the moves, int32 [K]. Raises InputError where a model gives anything else."""
        if not isinstance(moves, list) or len(moves) != self._agents:
            raise InputError(f"moves is {moves!r:.60}; give a list of {self._agents} moves, one for each agent")
        if wrong := [move for move in moves if not isinstance(move, str) or move.upper() not in WORDS]:
            raise InputError(f"{wrong[0]!r:.40} is no move; choose from {', '.join(WORDS)}")
        return np.array([WORDS[move.upper()] for move in moves], np.int32)
