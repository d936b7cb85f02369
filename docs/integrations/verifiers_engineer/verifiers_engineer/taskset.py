"""The taskset: the problems of an engineer's folder without end, or its held-out ones.

Outcomes are recorded from the traces that verifiers and prime-rl write, see `experiments/trainers/traces.py`.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path

import verifiers.v1 as vf
from pydantic import SerializeAsAny

from lakewright.core_jax.errors import InputError
from lakewright.engineer import MultiTurnEnvironment
from verifiers_engineer.problems import (
    EngineerData,
    Outcome,
    begin_episode,
    find_problem,
    judge_trace,
    list_group_figures,
    open_source,
)
from verifiers_engineer.toolset import EngineerToolset


class EngineerTaskConfig(vf.TaskConfig):
    """Set by the taskset."""

    played: bool = False
    """Whether a policy plays problems in several turns, by the tools of the folder's environment."""


class EngineerTask(vf.Task[EngineerData, Outcome, EngineerTaskConfig]):
    """One problem, judged by the folder's environment."""

    @classmethod
    def toolsets(cls, config: EngineerTaskConfig) -> list[vf.Toolset]:
        """The tools of an environment of several turns."""
        return [EngineerToolset(vf.ToolsetConfig())] if config.played else []

    @property
    def key(self) -> str:
        """Split, seed and place, which a prompt that comes twice does not make equal."""
        return f"{self.data.split} {self.data.seed} {self.data.place}"

    @vf.reward
    async def verdict(self, trace: vf.Trace) -> float:
        """The environment's reward."""
        return float(judge_trace(self.data, trace).reward)

    @vf.metric
    async def outcome(self, trace: vf.Trace) -> dict[str, float]:
        """`valid`, also of the stratum alone, and 1 for the failure or the grades of the answer, 0 for all others.

        Beside these, the figures of the stratum's groups from `list_group_figures`, whose mean is any one of them.
        """
        verdict = judge_trace(self.data, trace)
        space = open_source(self.data.folder, self.data.seed).environment.space
        failures = {f"failure/{name}": float(name == verdict.failure) for name in space.failures}
        grades = {f"grade/{name}": float(name in verdict.grades) for name in space.grades}
        of_stratum = {f"engineer/{find_problem(self.data).cell.stratum}/valid": float(verdict.valid)}
        return {"valid": float(verdict.valid), **of_stratum, **failures, **grades, **list_group_figures(self.data)}

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Judges the right answer, where the problem has one that is a text."""
        problem = find_problem(self.data)
        if not problem.answer or self.config.played:
            return None
        environment = open_source(self.data.folder, self.data.seed).environment
        return environment.check_verdict(problem, problem.answer).valid


class EngineerConfig(vf.TasksetConfig):
    """Which folder, and which of its problems."""

    task: SerializeAsAny[EngineerTaskConfig] = EngineerTaskConfig()
    folder: Path | None = None
    """The folder of an engineer, as of `lakewright engineer begin`; it must be given."""
    seed: int = 0
    """The seed of the problems; sources with other seeds have other problems."""
    held_out: bool = False
    """Whether these are the held-out problems, which end, or those of the present design, which do not."""


class EngineerTaskset(vf.Taskset[EngineerTask, EngineerConfig]):
    """The problems of a folder, each of the design of when it is taken from the taskset."""

    def __init__(self, config: EngineerConfig) -> None:
        if config.folder is None:
            raise InputError("folder is missing; give that of an engineer, as in --env.taskset.folder runs/e")
        self._folder = str(config.folder.absolute())
        played = isinstance(open_source(self._folder, config.seed).environment, MultiTurnEnvironment)
        config.task = config.task.model_copy(update={"played": played})
        super().__init__(config)
        self.INFINITE = not config.held_out

    def load(self) -> Iterable[EngineerTask]:
        """The tasks by place. Taken again, as a trainer that resumes does, a place has the same problem."""
        folder, split = self._folder, "held_out" if self.config.held_out else "train"
        source = open_source(folder, self.config.seed)
        problems = source.held_out if self.config.held_out else map(source.__getitem__, itertools.count())
        for place, problem in enumerate(problems):
            where = {"folder": folder, "seed": self.config.seed, "place": place, "version": problem.version}
            data = EngineerData(name=f"{split} {place}", prompt=problem.prompt, split=split, **where)
            if self.config.task.played:
                data = data.model_copy(update={"prompt": problem.prompt + begin_episode(data)[2]})
            yield EngineerTask(data, self.config.task)
