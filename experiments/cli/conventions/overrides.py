"""Settings of a run on a command line: `name=value`, or `--name=value`, anywhere on the line."""

import re
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from cyclopts import Parameter

OVERRIDE = re.compile(r"(--[a-z_]+(\.\w+)+|[a-z_]+(\.\w+)*)=")

Overrides: TypeAlias = Annotated[Sequence[str], Parameter(parse=False)]
"""The type of the keyword argument `overrides` of a command that takes settings, each as `name=value`."""


def take_overrides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings among the arguments, as `name=value`, and the other arguments."""
    overrides = [argument for argument in arguments if OVERRIDE.match(argument)]
    words = [argument for argument in arguments if not OVERRIDE.match(argument)]
    return [override.removeprefix("--") for override in overrides], words
