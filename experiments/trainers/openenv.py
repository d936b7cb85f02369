"""OpenEnv clients on the problems of an engineer's folder: the design determines the arguments of `reset`.

client = EngineerClient(GenericEnvClient(base_url=url).sync(), "runs/e", report)
result = client.reset()                                    # the server's reset gets stratum, knobs and seed

client = AsyncEngineerClient(GenericEnvClient(base_url=url), "runs/e", report)
result = await client.reset()
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from lakewright.core_jax.errors import InputError
from lakewright.engineer.problems import Problem, Verdict
from lakewright.experiments.trainers.episodes import EpisodeBook, make_seed

C = TypeVar("C")


class StepResult(Protocol):
    """The answer of OpenEnv's clients, its `StepResult`."""

    observation: Any
    reward: float | None
    done: bool


class Client(Protocol):
    """The part of OpenEnv's synchronous clients that is used."""

    def reset(self, **arguments: Any) -> StepResult:
        """Begins an episode."""

    def step(self, action: Any) -> StepResult:
        """Takes a step."""


class AsyncClient(Protocol):
    """The part of OpenEnv's asynchronous clients that is used."""

    async def reset(self, **arguments: Any) -> StepResult:
        """Begins an episode."""

    async def step(self, action: Any) -> StepResult:
        """Takes a step."""


class EpisodeClient(Generic[C]):
    """A client of which each episode is on the next problem of a folder, and is recorded."""

    def __init__(
        self,
        client: C,
        path: str | Path,
        report: Callable[[float, StepResult], str | Verdict] = lambda total, result: f"{total:g}",
        arguments: Callable[[Problem], dict[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        """Opens a folder.

        Args:
            client: a connected client, with its own session on the server.
            path: the engineer's folder.
            report: makes, from the sum of the rewards and the last result, the text for the environment to judge, or a
                verdict.
            arguments: the arguments of `reset` for a problem; by default `stratum`, each knob by its name, and `seed`.
            options: as in `EpisodeBook`.
        """
        self.client = client
        self.book = EpisodeBook(path, **options)
        self._report, self._arguments = report, arguments or self.name_arguments
        self._total, self._steps, self._running = 0.0, 0, False

    def name_arguments(self, problem: Problem) -> dict[str, Any]:
        """Stratum, knobs and a seed, by name."""
        knobs = self.book.environment.space.knobs
        values = {knob.name: knob.convert_value(value) for knob, value in zip(knobs, problem.cell.values, strict=True)}
        return {"stratum": problem.cell.stratum, **values, "seed": make_seed(problem)}

    def _name_reset(self) -> dict[str, Any]:
        """The arguments of `reset` for the present episode, which runs once the server has taken them."""
        self._running = False
        return self._arguments(self.book.find_problem())

    def _begin_episode(self, result: StepResult) -> StepResult:
        self._total, self._steps, self._running = 0.0, 0, True
        return result

    def _check_running(self) -> None:
        if not self._running:
            raise InputError("step: no episode has begun; call reset first")

    def _add_step(self, result: StepResult) -> StepResult:
        """Counts a step; the end of the episode is recorded."""
        self._total, self._steps = self._total + float(result.reward or 0.0), self._steps + 1
        if result.done:
            self.book.end_episode(self._report(self._total, result), self._steps)
            self._running = False
        return result


class EngineerClient(EpisodeClient[Client]):
    """A synchronous client of OpenEnv, on the problems of a folder."""

    def reset(self) -> StepResult:
        """Begins the present episode on the server."""
        return self._begin_episode(self.client.reset(**self._name_reset()))

    def step(self, action: Any) -> StepResult:
        """A step; the end of the episode is recorded. Raises InputError if no episode has begun."""
        self._check_running()
        return self._add_step(self.client.step(action))


class AsyncEngineerClient(EpisodeClient[AsyncClient]):
    """An asynchronous client of OpenEnv, on the problems of a folder; many may run in one event loop."""

    async def reset(self) -> StepResult:
        """Begins the present episode on the server."""
        return self._begin_episode(await self.client.reset(**self._name_reset()))

    async def step(self, action: Any) -> StepResult:
        """A step; the end of the episode is recorded. Raises InputError if no episode has begun."""
        self._check_running()
        return self._add_step(await self.client.step(action))
