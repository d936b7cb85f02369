"""Options that several commands share, and the choices of options."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Group, Parameter

from lakewright.engineer.teachers import TEACHERS as REGISTERED

if TYPE_CHECKING:
    from cyclopts.argument import ArgumentCollection

# No --no-json for --json, no JSON read from words that begin with [ or {; of an option given twice the last counts.
PLAIN = Parameter(negative=(), json_list=False, json_dict=False, allow_repeating=True)

Flag: TypeAlias = Annotated[bool, Parameter(show_default=False)]
Json: TypeAlias = Annotated[bool, Parameter(show_default=False, help="Print the result as JSON.")]

TEACHERS = tuple(REGISTERED)
SOLVERS = ("optimal", "prioritized", "greedy", "offset", "random")
BACKENDS = ("local", "ray")
BOARD_FORMATS = ("rows", "movingai", "lacam", "pogema", "published")
TRACKERS = ("tensorboard", "wandb", "trackio")
DEVICES = ("auto", "cpu", "cuda")


def check_name_of_teacher(_: type, name: str | None) -> None:
    """Refuses a name that is neither that of a built-in teacher nor that of a class, before anything is loaded."""
    if name is not None and ":" not in name and name not in TEACHERS:
        choices = ", ".join(TEACHERS)
        raise ValueError(f"--teacher is {name!r:.60}; choose from {choices}, or name module:Class or FILE.py:Class")


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
