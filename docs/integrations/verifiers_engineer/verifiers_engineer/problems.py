"""The problems of an engineer's folder, by what the data of a task say, and the outcome of an episode on one."""

import functools
from typing import Literal

import verifiers.v1 as vf

from lakewright.engineer import MultiTurnEnvironment, MultiTurnEpisode, Problem, Verdict
from lakewright.experiments.trainers.source import ProblemSource


class EngineerData(vf.TaskData):
    """Where a problem is of: folder, seed and place, with the version that the place is pinned to."""

    folder: str
    seed: int
    place: int
    version: int
    split: Literal["train", "held_out"] = "train"


class Outcome(vf.State):
    """The verdict on an episode of several turns after its last call of a tool; without a call `called` is False."""

    called: bool = False
    valid: bool = False
    reward: float = 0.0
    failure: str = ""
    grades: tuple[str, ...] = ()


def find_problem(data: EngineerData) -> Problem:
    """The problem of a task."""
    return open_source(data.folder, data.seed).find_problem(data.place, data.split)


def begin_episode(data: EngineerData) -> tuple[MultiTurnEnvironment, MultiTurnEpisode, str]:
    """An episode on the problem of a task, and what the policy reads after the prompt."""
    environment = open_source(data.folder, data.seed).environment
    assert isinstance(environment, MultiTurnEnvironment)
    episode = environment.make_episode()
    return environment, episode, environment.begin_episode(episode, find_problem(data)) or ""


def judge_trace(data: EngineerData, trace: vf.Trace) -> Verdict:
    """The environment's verdict: on the last reply, or that of the episode if there are several turns."""
    environment, problem = open_source(data.folder, data.seed).environment, find_problem(data)
    if not isinstance(environment, MultiTurnEnvironment):
        return environment.check_verdict(problem, trace.last_reply)
    found = trace.state
    if isinstance(found, Outcome) and found.called:
        return Verdict(found.valid, found.reward, found.failure, found.grades)
    environment, episode, _ = begin_episode(data)
    return environment.end_episode(episode, problem)


@functools.cache
def open_source(folder: str, seed: int) -> ProblemSource:
    """The source of a folder, opened once."""
    return ProblemSource(folder, seed)
