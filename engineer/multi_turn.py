"""Environments of several turns: a policy acts by tools, and its episode gives the verdict, so no text is judged.

episode = environment.make_episode()
environment.begin_episode(episode, problem)            # then the policy calls tools of the episode
verdicts = [environment.end_episode(episode, problem)]
engineer.observe([Group.from_verdicts(problem, verdicts)])
"""

import abc
import functools
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, Never

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import FailedCallError, run_call, show
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem, Verdict, find_fault_of_verdict, make_plain

NO_TOOLS = ("reset", "verdict")


class MultiTurnEpisode(abc.ABC):
    """Plays one problem after another. Its public methods, except `reset` and `verdict`, are the tools of a policy.

    Trainers show tools to the policy: annotate their arguments, and describe them under `Args:` in the docstring. A
    tool refuses arguments by a ValueError, whose text the policy reads.
    """

    @abc.abstractmethod
    def reset(self, problem: Problem) -> str | None:
        """Begins an episode on a problem; nothing remains from an earlier episode.

        Returns what the policy reads after the prompt, if anything; it is the same whenever the problem is.
        """

    @abc.abstractmethod
    def verdict(self) -> Verdict:
        """The verdict on the episode: whenever the policy stops, also if it called no tool."""


class MultiTurnEnvironment(Environment):
    """Problems of several turns. You write `space`, `make` and `make_episode`; there is no `judge`.

    Without `make_episode` problems are played elsewhere, for example in Gymnasium, and the verdicts that come from
    there are recorded.
    """

    def make_episode(self) -> MultiTurnEpisode:
        """An object that plays problems; one is made for each episode of a batch, and used again in the next."""
        raise InputError(f"{type(self).__name__} has no make_episode; write it, and return a MultiTurnEpisode")

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """Raises InputError: episodes give the verdicts."""
        self._refuse_text()

    def check_verdict(self, problem: Problem, answer: str) -> Verdict:
        """Raises InputError: an environment of several turns judges no text."""
        self._refuse_text()

    def _refuse_text(self) -> Never:
        raise InputError(
            f"{type(self).__name__} has several turns and judges no text; give a Verdict of each episode, as to "
            "OutcomeRecorder.record, Group.from_verdicts and Outcomes.of"
        )

    def begin_episode(self, episode: MultiTurnEpisode, problem: Problem) -> str | None:
        """The text after the prompt, if any. Raises InputError if `reset` fails, or gives anything else."""
        where = f"{type(episode).__name__}.reset: on {problem.prompt!r:.60}"
        found = run_call(where, lambda: episode.reset(self._name_cell(problem)))
        if found is not None and not isinstance(found, str):
            raise FailedCallError(f"{where}: gave {show(found)}; return a text or None")
        return found

    def end_episode(self, episode: MultiTurnEpisode, problem: Problem) -> Verdict:
        """The verdict on an episode. Raises InputError if `verdict` fails, or gives no proper one."""
        where = f"{type(episode).__name__}.verdict: on {problem.prompt!r:.60}"
        verdict = run_call(where, episode.verdict)
        if verdict is None:
            raise FailedCallError(f"{where}: the episode did not end; return a Verdict whenever the policy stops")
        if fault := find_fault_of_verdict(verdict, self.space):
            raise FailedCallError(f"{where}: {fault}")
        return make_plain(verdict)


def list_tools(episode: MultiTurnEpisode) -> dict[str, Callable[..., Any]]:
    """The functions of the tools by name, as of the class. Raises InputError if one is not described."""
    kind = type(episode)
    tools: dict[str, Callable[..., Any]] = {
        name: member
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and name not in NO_TOOLS
    }
    if not tools:
        raise InputError(f"{kind.__name__} has no tools; write methods that the policy may call")
    for name, tool in tools.items():
        where = f"{kind.__name__}.{name}"
        known = run_call(where, functools.partial(typing.get_type_hints, tool))
        if missing := [argument for argument in list_arguments(tool) if argument not in known]:
            raise InputError(f"{where}: argument {missing[0]} has no type; annotate it, for example as int")
        said = inspect.getdoc(tool) or ""
        if not said:
            raise InputError(f"{where}: has no docstring; say there what the tool does, because the policy reads it")
        for argument in list_arguments(tool):
            if not re.search(rf"^\s*{argument}\b.*:", said, re.MULTILINE):
                raise InputError(f"{where}: its docstring does not describe {argument}; add it under `Args:`")
    return tools


def list_arguments(tool: Callable[..., Any]) -> list[str]:
    """The names of the arguments of a tool."""
    return list(inspect.signature(tool).parameters)[1:]
