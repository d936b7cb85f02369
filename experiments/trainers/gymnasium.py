"""Gymnasium environments on the problems of an engineer's folder: the design determines what `reset` draws.

makers = [functools.partial(EngineerEnv, "runs/e", make_env, index=i, count=8) for i in range(8)]
environments = gymnasium.vector.SyncVectorEnv(makers)      # or AsyncVectorEnv
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import naming_extra
from lakewright.engineer.problems import Problem, Verdict
from lakewright.experiments.trainers.episodes import EpisodeBook, make_seed

with naming_extra(__name__, "gymnasium"):
    import gymnasium


class EngineerEnv(gymnasium.Env[Any, Any]):
    """An environment of which each episode is on the next problem of a folder, and is recorded.

    `info` of `reset` has `place` and `version` of the problem.
    """

    def __init__(
        self,
        path: str | Path,
        make: Callable[[Problem], gymnasium.Env[Any, Any]],
        report: Callable[[float, dict[str, Any]], str | Verdict] = lambda total, info: f"{total:g}",
        **options: Any,
    ) -> None:
        """Opens a folder.

        Args:
            path: the engineer's folder.
            make: makes the environment for a problem, with its time limits.
            report: makes, from the sum of the rewards and the last `info`, the text for the environment to judge, or a
                verdict.
            options: as in `EpisodeBook`.
        """
        self.book = EpisodeBook(path, **options)
        self._make, self._report = make, report
        self._env, self._problem = self._open_problem()
        self._total, self._steps, self._running = 0.0, 0, False
        self.observation_space, self.action_space = self._env.observation_space, self._env.action_space
        self.metadata, self.render_mode, self.spec = self._env.metadata, self._env.render_mode, self._env.spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins the present episode; which it is, and its chance, the folder determines, not `seed`."""
        super().reset(seed=seed)
        if self.book.find_problem() != self._problem:
            self._env.close()
            self._env, self._problem = self._open_problem()
            given = (self._env.observation_space, self._env.action_space)
            if given != (self.observation_space, self.action_space):
                raise InputError(f"place {self.book.place}: spaces are {given!s:.200}; use equal spaces throughout")
        observation, info = self._env.reset(seed=make_seed(self._problem), options=options)
        self._total, self._steps, self._running = 0.0, 0, True
        return observation, {**info, "place": self.book.place, "version": self._problem.version}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A step; the end of the episode is recorded."""
        observation, reward, terminated, truncated, info = self._env.step(action)
        self._total, self._steps = self._total + float(reward), self._steps + 1
        if self._running and (terminated or truncated):
            self.book.end_episode(self._report(self._total, info), self._steps)
            self._running = False
        return observation, float(reward), terminated, truncated, info

    def render(self) -> Any:
        """Renders the current environment."""
        return self._env.render()

    def close(self) -> None:
        """Closes the current environment."""
        self._env.close()

    def _open_problem(self) -> tuple[gymnasium.Env[Any, Any], Problem]:
        problem = self.book.find_problem()
        return self._make(problem), problem
