"""The properties of an environment of several turns: any calls of its tools lead to a verdict, the same each time."""

import asyncio
import inspect
import time
import typing
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from lakewright.engineer.multi_turn import MultiTurnEnvironment, MultiTurnEpisode, list_arguments, list_tools
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.testing.isolation import CallError
from lakewright.engineer.testing.properties import MOST_SCORED, Properties
from lakewright.engineer.testing.redraw import show_problem
from lakewright.engineer.testing.report import Fault
from lakewright.engineer.testing.search import LATE, Deadline, find_smallest
from lakewright.engineer.testing.trials import MOST_CONSTANT, Trials, encode_problem

PLAYED = "any calls lead to a verdict"  # a property
MOST_CALLS = 8  # of tools in an episode

Tool = tuple[str, dict[str, Any]]  # its name and its arguments


class PlayedTrials(Trials):
    """Trials of an environment of several turns."""

    environment: MultiTurnEnvironment

    def make_episode(self) -> MultiTurnEpisode:
        """An episode, whose tools are described."""
        episode = self.calls.run_call("make_episode", "make_episode()", self.environment.make_episode)
        if not isinstance(episode, MultiTurnEpisode):
            raise CallError(f"make_episode gave {episode!r:.60}; return a MultiTurnEpisode")
        self.calls.run_call("tools", "the class of the episode", lambda: list_tools(episode))
        return episode

    def judge_empty(self, problem: Problem) -> Verdict:
        """The verdict on an episode without calls."""
        return self.play_case((problem, []))

    def play_case(self, case: tuple[Problem, Sequence[Tool]]) -> Verdict:
        """The verdict on an episode with some calls, played twice: the second time on the problem as read from JSON."""
        problem, calls = case
        before = encode_problem(problem)
        episode = self.make_episode()
        first = self._play(episode, problem, calls)
        if encode_problem(problem) != before:
            raise CallError("an episode modified its problem; do not mutate its data")
        again = msgspec.json.decode(before, type=Problem)
        if self._play(episode, again, calls) != first:
            said = "an episode on the problem as read from JSON took a different course"
            raise CallError(f"{said}; let reset restore all state, and avoid chance and clocks")
        return first[-1]

    def _play(self, episode: MultiTurnEpisode, problem: Problem, calls: Sequence[Tool]) -> tuple[Any, ...]:
        """All that was said in an episode, and the verdict. It is asked for in the middle, too."""
        environment, case = self.environment, show_play((problem, calls))
        said: list[Any] = [self.calls.run_call("reset", case, lambda: environment.begin_episode(episode, problem))]
        for name, arguments in calls:
            said.append(self.calls.run_call(name, case, lambda: _call(getattr(episode, name), arguments)))  # noqa: B023
            self.calls.run_call("verdict", case, lambda: environment.end_episode(episode, problem))
        said = [text if isinstance(text, str) else repr(text) for text in said]
        return *said, self.calls.run_call("verdict", case, lambda: environment.end_episode(episode, problem))


class PlayedProperties(Properties):
    """The properties of an environment of several turns."""

    kind = PlayedTrials
    trials: PlayedTrials

    def play_any_calls(self, deadline: Deadline) -> Fault | None:
        """Any calls of tools, or no call, lead to a proper verdict."""
        if type(self.trials.environment).make_episode is MultiTurnEnvironment.make_episode:
            self.report.warnings.append("there is no make_episode, so no episode was tried")
            return None
        try:
            tools = list_tools(self.trials.make_episode())
        except CallError as error:
            return Fault(PLAYED, str(error), "make_episode()")
        problems = list(self.problems.values())
        calls = st.lists(st.one_of([_draw_call(name, tool) for name, tool in tools.items()]), max_size=MOST_CALLS)
        cases = st.tuples(st.sampled_from(problems), calls)
        return find_smallest(PLAYED, [(problems[0], [])], cases, self.trials.play_case, show_play, deadline, 300)

    def score_pool(self, pool: Sequence[Problem], deadline: Deadline) -> None:
        """Measures the rate of episodes without calls, and warns if they are valid."""
        begun, enough, valid = time.monotonic(), deadline.extend(LATE), []
        for problem in pool[:: 1 + len(pool) // MOST_SCORED]:
            try:
                valid.append(self.trials.judge_empty(problem).valid)
            except CallError:  # named by `play_any_calls`
                return
            if enough.is_over():
                break
        self.report.verdicts_per_second = 2 * len(valid) / max(1e-9, time.monotonic() - begun)
        if sum(valid) > MOST_CONSTANT * len(valid):
            said = f"an episode without any call is valid for {sum(valid) / len(valid):.0%} of the problems"
            self.report.warnings.append(said)

    def _judge_some(self, problems: Sequence[Problem]) -> list[list[Verdict]]:
        return []

    def in_order(self) -> list[tuple[Callable[[Deadline], Fault | None], int]]:
        """As of `Properties`, but episodes are played instead of texts judged."""
        judging = ("judge_references", "judge_any_text", "judge_attacks", "judge_together")
        usual = super().in_order()
        replaced = [place for place, (way, _) in enumerate(usual) if way.__name__ in judging]
        first, last = replaced[0], replaced[-1] + 1
        return [*usual[:first], (self.play_any_calls, sum(part for _, part in usual[first:last])), *usual[last:]]


def _draw_call(name: str, tool: Callable[..., Any]) -> st.SearchStrategy[Tool]:
    """Calls of a tool with arguments of their types."""
    types = typing.get_type_hints(tool)
    return st.tuples(
        st.just(name), st.fixed_dictionaries({one: st.from_type(types[one]) for one in list_arguments(tool)})
    )


def _call(tool: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """The text that a policy reads of a call, which may be refused."""
    try:
        found = tool(**arguments)
        return asyncio.run(found) if inspect.iscoroutine(found) else found
    except ValueError as error:
        return f"refused: {error}"


def show_play(case: tuple[Problem, Sequence[Tool]]) -> str:
    """Some calls with their problem, for people."""
    calls = "; ".join(
        f"{name}({', '.join(f'{key}={value!r:.40}' for key, value in given.items())})" for name, given in case[1]
    )
    return f"{calls or 'no call'} on {show_problem(case[0])}"
