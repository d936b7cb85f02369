"""Designs, from which problems are drawn, and deltas, which are typed changes of designs."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Stratum, stratum_of

DesignRow = dict[str, int | float]
"""The share of a stratum and the values of its knobs, by name."""


class Design(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True, omit_defaults=True):
    """The distribution of problems: for each stratum its share of the problems and the values of its knobs.

    given: the values that no edit changes, by name. version: counts the changes of an engineer; designs that differ in
    it alone are equal. The tables are copies: what a design was made from may change later.
    """

    strata: dict[int | str, DesignRow]
    given: dict[str, int | float] = {}
    version: int = 0

    def __post_init__(self) -> None:
        rows = {stratum: _as_plain(row) for stratum, row in by_stratum(self.strata).items()}
        msgspec.structs.force_setattr(self, "strata", rows)
        msgspec.structs.force_setattr(self, "given", _as_plain(self.given))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Design) and (self.strata, self.given) == (other.strata, other.given)

    def __ne__(self, other: object) -> bool:  # which a Struct does not derive from __eq__
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple((stratum, *row.values()) for stratum, row in self.strata.items()))

    def copy(self) -> "Design":
        """An equal design of the same version, with tables of its own."""
        return msgspec.structs.replace(self)

    def replace(self, strata: Mapping[Stratum, DesignRow]) -> "Design":
        """This design with other rows."""
        return msgspec.structs.replace(self, strata=dict(strata))


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Signed changes that are added to the share and the knobs of a stratum, by name, and why; all are named."""

    changes: dict[str, float]
    reason: str

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "changes", _as_plain(self.changes))


class Delta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Edits by stratum; a stratum that is not named stays."""

    edits: dict[int | str, Edit]

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "edits", by_stratum(self.edits))


def _as_plain(row: Any) -> Any:
    """A copy of a row, with NumPy's numbers converted to Python's, which JSON can hold."""
    if not isinstance(row, dict):
        return row
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()}


def by_stratum(table: Any) -> dict[Any, Any]:
    """A table of a file or a user, in which a name that is a whole number, or one of NumPy, is a number of Python.

    Raises InputError if it is something else.
    """
    if not isinstance(table, Mapping):
        raise InputError(f"{table!r:.60} is not a table; give a dict by stratum")
    return {_plain_stratum(name): value for name, value in table.items()}


def _plain_stratum(name: Any) -> Any:
    plain = name.item() if isinstance(name, np.generic) else name
    return stratum_of(plain) if isinstance(plain, str) else plain
