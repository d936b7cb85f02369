"""Settings of a run on a command line: `name=value`, or `--name=value`, anywhere on the line."""

import itertools
import re
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from cyclopts import Parameter

OVERRIDE = re.compile(r"(--[a-z_]+(\.\w+)+|[a-z_]+(\.\w+)*)=")
OPTION = "--option"  # of a teacher, which is name=value as well

Overrides: TypeAlias = Annotated[Sequence[str], Parameter(parse=False)]
"""The type of the keyword argument `overrides` of a command that takes settings, each as `name=value`."""


def take_overrides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings among the arguments, as `name=value`, and the other words, such as what follows `--option`."""
    overrides: list[str] = []
    words: list[str] = []
    for before, argument in itertools.pairwise(["", *arguments]):
        (overrides if OVERRIDE.match(argument) and before != OPTION else words).append(argument)
    return [override.removeprefix("--") for override in overrides], words
