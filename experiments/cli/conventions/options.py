"""Options that several commands share, the choices of options, and settings of a run as `name=value`."""

import dataclasses
import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Group, Parameter

from lakewright.core_jax.errors import suggest
from lakewright.engineer.teachers import TEACHERS as REGISTERED
from lakewright.experiments.jobs.executors.choice import EXECUTORS, ExecutorChoice

if TYPE_CHECKING:
    from cyclopts.argument import ArgumentCollection

OVERRIDE = re.compile(r"(--[a-z_]+(\.\w+)+|[a-z_]+(\.\w+)*)=")
OPTION = "--option"  # of a teacher, which is name=value as well

Overrides: TypeAlias = Annotated[Sequence[str], Parameter(parse=False)]
"""The type of the keyword argument `overrides` of a command that takes settings, each as `name=value`."""
# No --no-json for --json, no JSON read from words that begin with [ or {; of an option given twice the last counts.
PLAIN = Parameter(negative=(), json_list=False, json_dict=False, allow_repeating=True)
Flag: TypeAlias = Annotated[bool, Parameter(show_default=False)]
Json: TypeAlias = Annotated[bool, Parameter(show_default=False, help="Print the result as JSON.")]
TEACHERS = tuple(REGISTERED)
SOLVERS = ("optimal", "prioritized", "greedy", "offset", "random")
BOARD_FORMATS = ("rows", "movingai", "lacam", "eecbs", "pogema", "multirobot", "lorr", "published")
TRACKERS = ("tensorboard", "wandb", "trackio")
DEVICES = ("auto", "cpu", "cuda")


def take_overrides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings among the arguments, as `name=value`, and the other words, such as what follows `--option`."""
    overrides: list[str] = []
    words: list[str] = []
    for before, argument in itertools.pairwise(["", *arguments]):
        (overrides if OVERRIDE.match(argument) and before != OPTION else words).append(argument)
    return [override.removeprefix("--") for override in overrides], words


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """Where the tasks of a command run."""

    executor: Annotated[str, Parameter(choices=EXECUTORS)] = "local"
    """This machine, or the Ray cluster that RAY_ADDRESS names."""
    workers: int | None = None
    """Processes on this machine, or concurrent tasks on the cluster."""

    def chosen(self, processes: int | None = None) -> ExecutorChoice:
        """The choice. processes: the default number of processes on this machine."""
        workers = self.workers if self.workers is not None or self.executor != "local" else processes
        return ExecutorChoice(self.executor, workers)


def check_name_of_teacher(_: type, name: str | None) -> None:
    """Refuses a name that is neither a built-in teacher's nor a class's, before anything is loaded."""
    if name is not None and ":" not in name and name not in TEACHERS:
        raise ValueError(f"--teacher is {name!r:.60}; {suggest(name, TEACHERS)}, or name module:Class or FILE.py:Class")


# Completion offers the names; module:Class and FILE.py:Class are texts like others.
if TYPE_CHECKING:
    TeacherName: TypeAlias = str
else:
    TeacherName = Annotated[Literal[TEACHERS] | str, Parameter(validator=check_name_of_teacher, show_choices=False)]


def at_most_one() -> Group:
    """A group of options of which at most one may be given; help does not show it."""
    return Group(show=False, validator=_exclude_each_other)


def _exclude_each_other(arguments: "ArgumentCollection") -> None:
    given = [argument.name for argument in arguments if argument.tokens]
    if len(given) > 1:
        raise ValueError(f"{given[0]} and {given[1]} exclude each other; remove one")
