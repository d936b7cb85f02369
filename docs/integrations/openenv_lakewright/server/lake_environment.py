"""The environment of the server: a game of Lakewright for each client."""

import random
import uuid
from typing import Any

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

from lakewright.core_jax.errors import InputError
from lakewright.experiments.boards.episodes.pools import BoardPool
from lakewright.experiments.boards.episodes.trl_tasks import PlayedLake
from openenv_lakewright.models import LakeAction, LakeObservation, LakeState


class LakeEnvironment(Environment[LakeAction, LakeObservation, LakeState]):
    """Episodes on the boards of a pool, which all environments of a server share; none changes it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, pool: BoardPool) -> None:
        super().__init__()
        self._game, self._boards = PlayedLake(pool), pool.boards
        self._state = LakeState()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, board: int | None = None, **others: Any
    ) -> LakeObservation:
        """Begins an episode on the board of that number, or on one that the seed chooses.

        Raises InputError, a ValueError, on other arguments.
        """
        if others:
            raise InputError(f"reset: unknown argument {min(others)!r:.60}; choose from seed, episode_id, board")
        chosen = random.Random(seed).randrange(self._boards) if board is None else board
        text = self._game.reset(chosen)
        self._state = LakeState(episode_id=episode_id or str(uuid.uuid4()), step_count=0, board=chosen)
        return LakeObservation(text=text, done=False, reward=0.0)

    def step(self, action: LakeAction, timeout_s: float | None = None, **_: Any) -> LakeObservation:
        """A joint move. Raises InputError, a ValueError, after the end of an episode."""
        text = self._game.move(list(action.moves))
        self._state.step_count += 1
        return LakeObservation(text=text, done=self._game.over, reward=self._game.get_reward())

    @property
    def state(self) -> LakeState:
        """The episode, its board, and how many moves were made."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Name, description and version."""
        return EnvironmentMetadata(
            name="lakewright",
            description="Multi-agent FrozenLake on certified boards: bring every agent to its goal.",
            version="0.1.0",
        )
