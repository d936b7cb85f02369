"""TRL's `environment_factory` on the problems of a folder: what it makes, resets, and offers to the policy as tools.

TRL makes an object for each rollout of a batch, calls `reset` with the columns of its row, and takes the functions of
the object's class, except `reset` and those with an underscore, for tools.
"""

import asyncio
import contextlib
import functools
import inspect
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trl import GRPOTrainer

from lakewright.core_jax.errors import InputError
from lakewright.engineer.multi_turn import MultiTurnEnvironment, MultiTurnEpisode, list_tools
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.teachers import Message
from lakewright.experiments.trainers.slow_calls import LATE, SlowCallLog

AGAIN = 1.0  # seconds, after which a call that goes on is ended again
REMEDY = "correct it, or let EngineerTasks(..., tool_seconds=60) end such calls, in the main thread"

Prompt = str | list[Message]
FindProblem = Callable[[int, str], Problem]  # from the columns `place` and `split` of a row


class TimeUpError(BaseException):
    """Ends a call that takes too long; no Exception, so that a tool which tries again and again does not catch it."""


@contextlib.contextmanager
def limit_time(seconds: float | None) -> Iterator[None]:
    """Raises TimeUpError in a block that takes too long, by the alarm of the process, which afterwards is as before.

    In another thread than the main one, which gets no signals, and on systems without alarms nothing is limited.
    """
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    begun, over = time.monotonic(), False

    def end_call(*_: Any) -> None:
        if not over:
            raise TimeUpError

    handler = signal.signal(signal.SIGALRM, end_call)
    left, again = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(AGAIN / 1000, left - (time.monotonic() - begun)), again)


class PlayedRollout:
    """One rollout after another, each an episode on the problem of a row; subclasses have the tools."""

    def __init__(self, factory: "RolloutFactory") -> None:
        self._factory, self._problem = factory, Problem("")
        self._episode = factory.make_episode()
        self._fault: InputError | None = None
        self._place: int | None = None  # of the problem, if it is one of the data set

    def reset(self, place: int | None = None, split: str = "train", **_: Any) -> str | None:
        """Begins an episode on the problem of a row; returns the text that the policy reads after the prompt."""
        if place is None:
            raise InputError("reset: a row has no place; give GRPOTrainer train_dataset=tasks.train_dataset")
        text = self._begin_episode(self._factory.find_problem(place, split), place)
        self._factory.check_beginning(place, split, text)
        return text

    @property
    def verdict(self) -> Verdict:
        """The verdict on the episode; a property, so that it isn't taken for a tool.

        Raises InputError without one, also if a call of the episode took too long.
        """
        with self._limit("verdict"):
            return self._factory.environment.end_episode(self._episode, self._problem)

    def _begin_episode(self, problem: Problem, place: int | None = None) -> str | None:
        self._problem, self._place, self._fault = problem, place, None
        with self._limit("reset"):
            return self._factory.environment.begin_episode(self._episode, problem)

    @contextlib.contextmanager
    def _limit(self, name: str, *, awaited: bool = False) -> Iterator[None]:
        """Ends a call of the episode if it takes too long; then no other is made. Raises InputError.

        Without a limit, such a call is named in the log. So it is on a system that has no alarms.

        awaited: whether the block awaits it, and raises TimeoutError by itself.
        """
        if self._fault:  # TRL gives the errors of tools to the policy, which may call another
            raise self._fault
        begun = time.monotonic()
        try:
            with (
                self._factory.slow_calls.watch(name, lambda: self._describe_call(name)),
                limit_time(None if awaited else self._factory.seconds),
            ):
                yield
        except (TimeUpError, TimeoutError) as error:
            seconds = self._factory.seconds
            if isinstance(error, TimeoutError) and not (awaited and seconds and time.monotonic() - begun >= seconds):
                raise  # the tool's own, which the policy reads
            said = f"{self._describe_call(name)}: took over {seconds:g} s, so the episode did not end"
            self._fault = InputError(f"{said}; correct it, or give EngineerTasks a longer tool_seconds")
            raise self._fault from None

    def _describe_call(self, name: str) -> str:
        place = "" if self._place is None else f"place {self._place}: "
        return f"{place}{type(self._episode).__name__}.{name}: on {self._problem.prompt!r:.60}"


class RolloutFactory:
    """Makes rollouts, all members of a group on one problem: the `environment_factory` of `GRPOTrainer`."""

    def __init__(
        self,
        environment: MultiTurnEnvironment,
        find_problem: FindProblem,
        seconds: float | None = None,
        late: float = LATE,
    ) -> None:
        """Reads the tools of an environment's episodes.

        Args:
            environment: makes the episodes.
            find_problem: gives a row's problem.
            seconds: the longest time for a call of an episode; None for any.
            late: seconds after which a call that is not ended is named in the log.

        Raises InputError if it makes no episodes, or these have no tools.
        """
        self.environment, self.find_problem, self.seconds = environment, find_problem, seconds
        # With a limit, only a call that the alarm did not end is named.
        self.slow_calls = SlowCallLog(REMEDY, max(late, 2 * (seconds or 0)))
        self.tools = list_tools(self.make_episode())
        forwarded = {name: _forward_call(name, tool) for name, tool in self.tools.items()}
        self._kind = type(type(environment).__name__, (PlayedRollout,), forwarded)
        self._begun: tuple[int, str, str | None] | None = None
        self._spare: list[PlayedRollout] = []

    def __call__(self) -> PlayedRollout:
        """A new object for rollouts, which is used again and again."""
        rollout: PlayedRollout = self._kind(self)
        return rollout

    def make_episode(self) -> MultiTurnEpisode:
        """An episode of the environment."""
        with self.slow_calls.watch("make_episode", lambda: f"{type(self.environment).__name__}.make_episode"):
            return self.environment.make_episode()

    def check_beginning(self, place: int, split: str, text: str | None) -> None:
        """Raises InputError if the member before of the same group begins with another text."""
        before, self._begun = self._begun, (place, split, text)
        if before and before[:2] == (place, split) and before[2] != text:
            raise InputError(
                f"place {place}: members of its group begin with {before[2]!r:.60} and {text!r:.60}; let reset "
                "return the same text for the same problem"
            )

    @contextlib.contextmanager
    def play_here(
        self, trainer: GRPOTrainer, prompts: Sequence[Prompt], problems: Sequence[Problem]
    ) -> Iterator[tuple[list[PlayedRollout], list[Prompt]]]:
        """Rollouts of some problems, whose tools the trainer's generation calls in the block, and how they begin.

        prompts: messages, one for each problem. Without problems no tool is called.
        """
        self._spare += [self() for _ in range(len(problems) - len(self._spare))]
        rollouts = self._spare[: len(problems)]
        changes: dict[str, Any] = {
            "environments": rollouts,
            "_batch_environments": [None] * len(rollouts),
            "_sync_tool_dicts": [self._map_methods(rollout, apart=False) for rollout in rollouts],
            "_async_tool_dicts": [self._map_methods(rollout, apart=True) for rollout in rollouts],
        }
        if not problems:
            changes |= {"environment_factories": None, "tools": []}
        begun = [
            _add_text(prompt, rollout._begin_episode(problem))
            for rollout, prompt, problem in zip(rollouts, prompts, problems, strict=False)
        ]
        with _change_for_a_while(trainer, changes):
            yield rollouts, begun or list(prompts)

    def _map_methods(self, rollout: PlayedRollout, *, apart: bool) -> dict[str, Callable[..., Any]]:
        """The tools of a rollout by name: those that are coroutines, or those that are not."""
        names = [name for name, tool in self.tools.items() if inspect.iscoroutinefunction(tool) is apart]
        return {name: getattr(rollout, name) for name in names}


def _add_text(prompt: Prompt, text: str | None) -> Prompt:
    """A conversation with an episode's beginning after its last message, as TRL puts it there."""
    if text is None or isinstance(prompt, str):
        return prompt
    return [*prompt[:-1], {**prompt[-1], "content": prompt[-1]["content"] + text}]


def _forward_call(name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool as a function of a rollout, with the types and the docstring from which TRL describes it."""

    def call_tool(self: PlayedRollout, *arguments: Any, **named: Any) -> Any:
        with self._limit(name):
            return getattr(self._episode, name)(*arguments, **named)

    async def await_tool(self: PlayedRollout, *arguments: Any, **named: Any) -> Any:
        with self._limit(name, awaited=True):
            return await asyncio.wait_for(getattr(self._episode, name)(*arguments, **named), self._factory.seconds)

    return functools.wraps(tool)(await_tool if inspect.iscoroutinefunction(tool) else call_tool)


@contextlib.contextmanager
def _change_for_a_while(trainer: GRPOTrainer, changes: dict[str, Any]) -> Iterator[None]:
    """Sets attributes of a trainer in the block; some of them it has from its first batch on."""
    before = {name: vars(trainer)[name] for name in changes if name in vars(trainer)}
    vars(trainer).update(changes)
    try:
        yield
    finally:
        for name in changes:
            del vars(trainer)[name]
        vars(trainer).update(before)
