"""A game in text: the board as text, joint moves as text, and the outcome of each."""

from typing import Any

import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.terms import DOWN, FAILURE_NAMES, LEFT, RIGHT, UP, WAIT
from lakewright.experiments.boards.episodes.episode import Episode
from lakewright.experiments.boards.episodes.pools import BoardPool

WORDS = {"UP": UP, "DOWN": DOWN, "LEFT": LEFT, "RIGHT": RIGHT, "WAIT": WAIT}


class PlayedLake:
    """One episode after another. TRL takes the public methods, except `reset` and `get_reward`, for a model's tools."""

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
