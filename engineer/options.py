"""Keyword arguments that come from outside."""

import inspect
import math
from collections.abc import Mapping
from typing import Any

from core_jax.errors import InputError


def check_options(where: str, name: str, signature: inspect.Signature, options: Mapping[str, Any]) -> None:
    """Raises InputError where `options` are no arguments of `signature` with a default, or of another type."""
    known = {option: value.default for option, value in signature.parameters.items()}
    known = {option: default for option, default in known.items() if default is not inspect.Parameter.empty}
    for option, value in options.items():
        if option not in known:
            choices = ", ".join(known) or "none"
            raise InputError(f"{where}: {option!r:.60} is unknown to {name}; choose from {choices}")
        kind = type(known[option])
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise InputError(f"{where}: {option} is {value!r:.60}; give a {kind.__name__}")


def check_range(option: str, value: float, least: float, most: float = math.inf) -> None:
    """Raises InputError where an option of a teacher is not `least` to `most`."""
    if not least <= value <= most:
        choices = f"{least:g} to {most:g}" if most < math.inf else f"{least:g} or more"
        raise InputError(f"teacher_options: {option} is {value:g}; choose {choices}")
