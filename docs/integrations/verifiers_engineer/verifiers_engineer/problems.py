"""The problems of an engineer's folder, by what the data of a task say, and the outcome of an episode on one."""

import functools
import time
from contextlib import AbstractContextManager
from typing import Literal

import verifiers.v1 as vf

from lakewright.core_jax.errors import InputError
from lakewright.engineer import MultiTurnEnvironment, MultiTurnEpisode, Problem, Verdict
from lakewright.engineer.signal import StratumSignal
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.slow_calls import SlowCallLog
from lakewright.experiments.trainers.source import ProblemSource

SLOW_CALLS = SlowCallLog("correct it")
COUNTED_FOR = 30.0  # seconds, before the groups of a folder are counted again


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
    with watch_call("reset", data):
        episode = environment.make_episode()
        return environment, episode, environment.begin_episode(episode, find_problem(data)) or ""


def judge_trace(data: EngineerData, trace: vf.Trace) -> Verdict:
    """The environment's verdict: on the last reply, or that of the episode if there are several turns."""
    environment, problem = open_source(data.folder, data.seed).environment, find_problem(data)
    if not isinstance(environment, MultiTurnEnvironment):
        with watch_call("judge", data):
            return environment.check_verdict(problem, trace.last_reply)
    found = trace.state
    if isinstance(found, Outcome) and found.called:
        return Verdict(found.valid, found.reward, found.failure, found.grades)
    environment, episode, _ = begin_episode(data)
    with watch_call("verdict", data):
        return environment.end_episode(episode, problem)


def watch_call(name: str, data: EngineerData) -> AbstractContextManager[None]:
    """Logs a line if a block of the environment's code does not end. name: the name of a tool or function."""
    return SLOW_CALLS.watch(name, lambda: f"{name}: on {data.split} place {data.place} of {data.folder}")


@functools.cache
def open_source(folder: str, seed: int) -> ProblemSource:
    """The source of a folder, opened once."""
    return ProblemSource(folder, seed)


def list_group_figures(data: EngineerData) -> dict[str, float]:
    """The figures of the groups of the task's stratum, of the newest version with groups that were recorded, by name.

    verifiers scores each answer by itself, maybe in different processes, so they come from the folder: as they were
    after the last `record_traces`, within half a minute.
    """
    stratum = str(find_problem(data).cell.stratum)
    counted = _count_groups(data.folder, int(time.monotonic() / COUNTED_FOR))
    for version in sorted(counted, key=int, reverse=True):
        if (found := counted[version].get(stratum)) and found.groups:
            shares = {"signal": found.signal, "solved": found.solved, "out_of_reach": found.out_of_reach}
            named = shares | {"tokens_without_signal": found.wasted}
            return {f"engineer/{stratum}/{name}": share for name, share in named.items()}
    return {}


@functools.lru_cache(16)
def _count_groups(folder: str, moment: int) -> dict[str, dict[str, StratumSignal]]:
    """The figures by version and stratum. moment: counts once for each, of half a minute."""
    try:
        return EngineerFolder(folder).status().strata
    except InputError:
        return {}  # `engineer status` says why, and the answer has its reward without
