"""Options of teachers and samplers: the keyword arguments of a class, decoded by their annotated types and ranges."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert

Power = Annotated[float, msgspec.Meta(ge=0, le=10)]  # to which weights are raised
Draws = Annotated[int, msgspec.Meta(ge=1, le=100_000)]  # random draws for one proposal


def checked_options(where: str, name: str, make: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as `make` annotates them.

    Raises InputError where one is no argument of `make` with a default, or of another type, or outside its range.
    """
    kind = _options_of(make)
    for option in options:
        if option not in kind.__struct_fields__:
            choices = ", ".join(kind.__struct_fields__) or "none"
            raise InputError(f"{where}: {option!r:.60} is unknown to {name}; choose from {choices}")
    checked = convert(dict(options), kind, where)
    return {option: getattr(checked, option) for option in options}


@functools.cache
def _options_of(make: Callable[..., Any]) -> type[msgspec.Struct]:
    """A struct of the arguments that have a default."""
    arguments = inspect.signature(make).parameters.items()
    fields = [(name, given.annotation, given.default) for name, given in arguments if given.default is not given.empty]
    return msgspec.defstruct("Options", fields, frozen=True, forbid_unknown_fields=True)
