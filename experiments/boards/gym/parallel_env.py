"""The lake for agents that each decide for themselves, as a PettingZoo environment in which all move at once."""

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake import BoardObservation
from lakewright.core_jax.terms import WAIT
from lakewright.experiments.boards.episodes.episode import BoardEpisode, read_options
from lakewright.experiments.boards.episodes.pictures import MODES
from lakewright.experiments.boards.episodes.pools import board_pool
from lakewright.experiments.boards.gym.team_env import Arrays, as_info

PROBE = "options"  # which PettingZoo's own checker gives to `reset`, and all environments have to take
PLANES = 5  # holes, my place, my goal, the others' places, the others' goals


class LakeParallelEnv(ParallelEnv[str, Arrays, int]):
    """Agents `agent_0`, `agent_1`, ...: each chooses 0 up, 1 down, 2 left, 3 right or 4 wait, and all move at once.

    All get the team's reward, 1 for the move after which all are at their goals, else 0. The episode ends for all at
    once: there, if a rule is broken (then nobody moves), or after `step_limit` moves. options: as `TeamEnv`.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "lakewright_v0",
        "render_modes": list(MODES),
        "render_fps": 4,
        "is_parallelizable": True,
    }

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        pool = board_pool(**options)
        self._boards = pool.boards
        self._episode = BoardEpisode(pool, render_mode)
        self._random, _ = seeding.np_random()
        self.render_mode = render_mode
        self.possible_agents = [f"agent_{number}" for number in range(pool.agents)]
        self.agents: list[str] = []
        self._ended = False
        self._spaces = {name: _make_agent_space(pool.size) for name in self.possible_agents}
        self._actions = {name: spaces.Discrete(5) for name in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Dict:
        """Planes int8 [n, n, 5], and the agent's position and goal, int32 [2] each."""
        return self._spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The five moves."""
        return self._actions[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Arrays], dict[str, dict[str, Any]]]:
        """The first observation of each agent, and the certified optima of the board."""
        if seed is not None:
            self._random, _ = seeding.np_random(seed)
        chosen = read_options(options, ("board", PROBE)).get("board")
        board = int(self._random.integers(self._boards)) if chosen is None else chosen
        observation, optima = self._episode.begin(board)
        self.agents, self._ended = list(self.possible_agents), False
        return self._split_observation(observation), {name: dict(optima) for name in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Arrays], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """All move; of agents that are not named the move is to wait. After the end all five dictionaries are empty.

        Raises InputError on the name of an agent that does not exist, or a move that is not a whole number.
        """
        if unknown := [name for name in actions if name not in self.possible_agents]:
            raise InputError(f"step: unknown agent {unknown[0]!r:.60}; choose from {', '.join(self.possible_agents)}")
        if self._ended:
            return {}, {}, {}, {}, {}
        moves = np.array([actions.get(name, WAIT) for name in self.possible_agents])
        observation, reward, terminated, truncated, info = self._episode.move(moves)
        names = self.agents
        if terminated or truncated:
            self.agents, self._ended = [], True
        return (
            self._split_observation(observation),
            dict.fromkeys(names, reward),
            dict.fromkeys(names, terminated),
            dict.fromkeys(names, truncated),
            {name: as_info(info) for name in names},
        )

    def render(self) -> Any:
        """Text or pixels of the board, by the render mode."""
        return self._episode.picture()

    def _split_observation(self, observation: BoardObservation) -> dict[str, Arrays]:
        planes, positions = np.asarray(observation.planes, np.int8), np.asarray(observation.positions)
        goals, count = np.asarray(observation.goals), len(self.possible_agents)
        holes, places, ends = planes[..., :1], planes[..., 1 : 1 + count], planes[..., 1 + count :]
        found = {}
        for number, name in enumerate(self.possible_agents):
            others = [other for other in range(count) if other != number]
            mine = places[..., [number]], ends[..., [number]]
            rest = (part[..., others].any(-1, keepdims=True).astype(np.int8) for part in (places, ends))
            found[name] = {
                "planes": np.concatenate([holes, *mine, *rest], -1),
                "position": positions[number].copy(),
                "goal": goals[number].copy(),
            }
        return found


def _make_agent_space(size: int) -> spaces.Dict:
    return spaces.Dict(
        {
            "planes": spaces.Box(0, 1, (size, size, PLANES), np.int8),
            "position": spaces.Box(0, size - 1, (2,), np.int32),
            "goal": spaces.Box(0, size - 1, (2,), np.int32),
        }
    )
