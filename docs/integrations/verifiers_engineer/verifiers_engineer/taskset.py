"""The taskset: the problems of an engineer's folder without end, or its held-out ones.

Outcomes are recorded from the traces that verifiers and prime-rl write, see `experiments/trainers/traces.py`.
"""

import functools
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import verifiers.v1 as vf

from lakewright.core_jax.errors import InputError
from lakewright.engineer import Problem, Verdict
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.source import ProblemSource


class EngineerData(vf.TaskData):
    """Where a problem is of: folder, seed and place, with the version that the place is pinned to."""

    folder: str
    seed: int
    place: int
    version: int
    split: Literal["train", "held_out"] = "train"


class EngineerTask(vf.Task[EngineerData]):
    """One problem, judged by the folder's environment."""

    @property
    def key(self) -> str:
        """Split, seed and place, which a prompt that comes twice does not make equal."""
        return f"{self.data.split} {self.data.seed} {self.data.place}"

    @vf.reward
    async def verdict(self, trace: vf.Trace) -> float:
        """The environment's reward."""
        return float(self._judge(trace.last_reply).reward)

    @vf.metric
    async def outcome(self, trace: vf.Trace) -> dict[str, float]:
        """`valid`, and 1 for the failure or the grades of the answer, by name, 0 for all others."""
        verdict, space = self._judge(trace.last_reply), _open_source(self.data.folder, self.data.seed).environment.space
        failures = {f"failure/{name}": float(name == verdict.failure) for name in space.failures}
        grades = {f"grade/{name}": float(name in verdict.grades) for name in space.grades}
        return {"valid": float(verdict.valid), **failures, **grades}

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Judges the right answer, where the problem has one."""
        answer = self._problem.answer
        return self._judge(answer).valid if answer else None

    @property
    def _problem(self) -> Problem:
        data = self.data
        held_out = data.split == "held_out"
        return _draw_held_out(data.folder)[data.place] if held_out else _open_source(data.folder, data.seed)[data.place]

    def _judge(self, answer: str) -> Verdict:
        return _open_source(self.data.folder, self.data.seed).environment.check_verdict(self._problem, answer)


class EngineerConfig(vf.TasksetConfig):
    """Which folder, and which of its problems."""

    folder: Path | None = None
    """The folder of an engineer, as of `lakewright engineer begin`; it must be given."""
    seed: int = 0
    """The seed of the problems; sources with other seeds have other problems."""
    held_out: bool = False
    """Whether these are the held-out problems, which end, or those of the present design, which do not."""


class EngineerTaskset(vf.Taskset[EngineerTask, EngineerConfig]):
    """The problems of a folder, each of the design of when it is taken from the taskset."""

    def __init__(self, config: EngineerConfig) -> None:
        super().__init__(config)
        if config.folder is None:
            raise InputError("folder is missing; give that of an engineer, as in --env.taskset.folder runs/e")
        self._folder = str(config.folder.absolute())
        self.INFINITE = not config.held_out

    def load(self) -> Iterable[EngineerTask]:
        """The tasks by place. Taken again, as a trainer that resumes does, a place has the same problem."""
        folder, split = self._folder, "held_out" if self.config.held_out else "train"
        source = _open_source(folder, self.config.seed)
        problems = _draw_held_out(folder) if self.config.held_out else map(source.__getitem__, itertools.count())
        for place, problem in enumerate(problems):
            where = {"folder": folder, "seed": self.config.seed, "place": place, "version": problem.version}
            name = f"{split} {place}"
            yield EngineerTask(EngineerData(name=name, prompt=problem.prompt, split=split, **where), self.config.task)


@functools.cache
def _open_source(folder: str, seed: int) -> ProblemSource:
    return ProblemSource(folder, seed)


@functools.cache
def _draw_held_out(folder: str) -> list[Problem]:
    return EngineerFolder(folder).held_out()
