"""What an address asks for, as the types of our own: strictly, as everything that comes from outside."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from lakewright.core_jax.errors import InputError

T = TypeVar("T", bound=msgspec.Struct)
LONGEST = 4096  # letters of a value


def asked_for(kind: type[T], query: Mapping[str, list[str]]) -> T:
    """The fields of `kind` from a query; empty ones count as not given. Raises InputError naming field and value."""
    given = {name: values[-1] for name, values in query.items() if name in kind.__struct_fields__ and values[-1] != ""}
    if long := [name for name, value in given.items() if len(value) > LONGEST]:
        raise InputError(f"address: {long[0]} is too long; give at most {LONGEST} letters")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"address: {str(error).replace('`', '')}; correct it, or go back") from error


def plain(found: msgspec.Struct) -> dict[str, str]:
    """The query that asks for this; what is as always is left out."""
    defaults = type(found)()
    values = {name: getattr(found, name) for name in found.__struct_fields__}
    changed = {name: value for name, value in values.items() if value != getattr(defaults, name)}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in changed.items()}
