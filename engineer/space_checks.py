"""Checks of the parts of a design space, names, ranges of knobs in single strata, cells and designs."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.support import first_repeated
from lakewright.engineer.cells import Cell, Given, Knob, Stratum, check_grid, is_finite, stratum_of
from lakewright.engineer.design import Design
from lakewright.engineer.windows import check_size, check_window
from lakewright.engineer.words import FIELDS, RateWords, Words

_STRATUM = re.compile(r"[\w.:/+-]{1,60}")
SHARE_TOLERANCE = 1e-3  # tolerance on the sum of the shares


def check_strata(strata: Sequence[Stratum]) -> None:
    """Raises InputError on an empty list, a repeated stratum, or anything but names and whole numbers."""
    if not strata:
        raise InputError("space: it has no strata; name at least one")
    for stratum in strata:
        if isinstance(stratum, bool) or not isinstance(stratum, int | str):
            raise InputError(f"space: stratum {stratum!r:.60} is neither a whole number nor a name; use one of these")
        if isinstance(stratum, str) and (not _STRATUM.fullmatch(stratum) or stratum_of(stratum) != stratum):
            raise InputError(f"space: stratum {stratum!r:.60} is not a name; use letters, digits and ._:/+-, or an int")
    _check_once("stratum", strata)


def check_names(kind: str, names: Sequence[str], taken: Sequence[str] = ()) -> None:
    """Raises InputError if a name cannot be an identifier, appears twice, or is taken."""
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"space: {kind} {name!r:.60} is not an identifier; choose letters, digits and _")
    _check_once(kind, [*taken, *names])


def _check_once(kind: str, names: Sequence[Stratum]) -> None:
    if (twice := first_repeated(names)) is not None:
        raise InputError(f"space: {kind} {twice!r:.60} appears twice; name each once")


def check_tops(knobs: Sequence[Knob]) -> None:
    """Raises InputError if a knob has the name of the upper end of another one's window."""
    names = [knob.name for knob in knobs]
    if taken := [knob for knob in knobs if knob.top in names]:
        said = f"space: knob {taken[0].top!r:.60} has the name of the upper end of {taken[0].name}"
        raise InputError(f"{said}; choose another name, or give Knob({taken[0].name!r:.60}, window=False)")


def check_words(words: Words, knobs: Sequence[Knob]) -> None:
    """Raises InputError on phrases of unknown knobs, and on unknown fields in the question."""
    for name, phrases in (*words.traits.items(), *words.trait_outcomes.items()):
        if name not in [knob.name for knob in knobs if knob.trait]:
            raise InputError(f"space: words have phrases of {name!r:.60}, which is not a trait; leave them out")
        if not isinstance(phrases, tuple | list) or len(phrases) != 2:
            raise InputError(f"space: words of {name} are {phrases!r:.60}; give a phrase with and one without it")
    for name, rate in words.rates.items():
        if not isinstance(rate, RateWords):
            raise InputError(f"space: words.rates of {name} are {rate!r:.60}; give RateWords")
    try:
        words.question.format(**dict.fromkeys(FIELDS, ""))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        fields = ", ".join(f"{{{field}}}" for field in FIELDS)
        raise InputError(
            f"space: question of words has {error}; its fields are {fields}, others {{{{ and }}}}"
        ) from error


def check_ranges(
    limits: Mapping[Stratum, Mapping[str, tuple[float, float]]], strata: Sequence[Stratum], knobs: Sequence[Knob]
) -> None:
    """Raises InputError if limits name another stratum or knob, or exceed the range of a knob."""
    known = {knob.name: knob for knob in knobs}
    for stratum, given in limits.items():
        if stratum not in strata:
            raise InputError(f"space: limits name {stratum!r:.60}, which is not a stratum; leave it out")
        for name, (low, high) in given.items():
            if name not in known:
                raise InputError(f"space: limits.{stratum} name {name!r:.60}, which is not a knob; leave it out")
            knob, at = known[name], f"space: limits.{stratum}.{name} is {low:g} to {high:g}"
            if not knob.low <= low <= high <= knob.high:
                raise InputError(f"{at}; choose a part of {knob.low:g} to {knob.high:g}")
            check_grid((low, high), f"space: limits.{stratum}.{name}")
            if knob.whole and (low != int(low) or high != int(high)):
                raise InputError(f"{at}, but the knob is whole; choose whole numbers")


class CellSpace(Protocol):
    """The part of a design space that says what its cells are."""

    knobs: tuple[Knob, ...]
    givens: tuple[Given, ...]

    def has_stratum(self, stratum: Any) -> bool:
        """Return True if this is a stratum of the space."""
        ...


def check_cell_of(one: Any, kind: type[Any], space: CellSpace, where: str) -> None:
    """Raises InputError if something is not of its kind, or not of a cell of the space.

    Args:
        one: the problem, group, or observation to check.
        kind: the required type.
        space: the design space.
        where: the place to name in messages.
    """
    if not isinstance(one, kind):
        raise InputError(f"{where}: {one!r:.60} is not a {kind.__name__}; leave it out")
    if not isinstance(one.cell, Cell):
        raise InputError(f"{where}: cell {one.cell!r:.60} is not a Cell; leave it out")
    stratum, values, given = one.cell
    tuples = isinstance(values, tuple) and isinstance(given, tuple) and space.has_stratum(stratum)
    fits = tuples and len(values) == len(space.knobs) and len(given) in (0, len(space.givens))
    # Canonical cells may be beyond the range of a knob; its kind of value they have.
    if not (fits and all(map(is_finite, (*values, *given))) and all(map(Knob.has_form, space.knobs, values))):
        raise InputError(f"{where}: cell {tuple(one.cell)!r:.60} is not a cell of this environment; leave it out")


class RowSpace(CellSpace, Protocol):
    """The part of a design space that says what its designs are."""

    strata: tuple[Stratum, ...]
    share: Knob
    columns: tuple[Knob, ...]
    words: Words

    def limits(self, stratum: Stratum, knob: Knob) -> tuple[float, float]:
        """The range of a knob in a stratum."""
        ...


def check_design(design: Design, space: RowSpace, where: str = "design") -> None:
    """Raises InputError if a design does not fit the space: another stratum or knob, or a value out of range."""
    if not isinstance(design, Design):
        raise InputError(f"{where}: {design!r:.60} is not a Design; make one by space.design")
    path, names = space.words.path, [column.name for column in space.columns]
    known = [*names, *(knob.top for knob in space.knobs if knob.top)]
    if not design.strata:
        raise InputError(f"{where}: {path} is empty; name at least one {space.words.stratum}")
    for stratum, row in design.strata.items():
        if not space.has_stratum(stratum):
            raise InputError(f"{where}: {path}.{stratum!s:.60} is unknown; {suggest(stratum, space.strata[:20])}")
        if unknown := [name for name in row if name not in known]:
            raise InputError(f"{where}: {path}.{stratum}.{unknown[0]:.60} is unknown; {suggest(unknown[0], known)}")
        if missing := [name for name in names if name not in row]:
            raise InputError(f"{where}: {path}.{stratum}.{missing[0]} is missing; add it")
        for column in space.columns:
            at = f"{where}: {path}.{stratum}.{column.name}"
            column.check_value(row[column.name], space.limits(stratum, column), at)
            check_window(row, column, space.limits(stratum, column), at)
        check_size(row, space.knobs, f"{where}: {path}.{stratum}")
    total = math.fsum(row[space.share.name] for row in design.strata.values())
    if abs(total - 1) > SHARE_TOLERANCE:
        raise InputError(
            f"{where}: the values of {space.share.name} in all {path} sum to {total:.4g}, not 1; divide each by it"
        )
    if missing := [given.name for given in space.givens if given.name not in design.given]:
        raise InputError(f"{where}: given.{missing[0]} is missing; add it")
    givens = [given.name for given in space.givens]
    for name, value in design.given.items():
        if name in known:
            raise InputError(f"{where}: given.{name} is a knob; give it in the rows of space.design")
        if name not in givens:
            raise InputError(f"{where}: given.{name:.60} is unknown; {suggest(name, givens)}")
        if isinstance(value, bool) or not is_finite(value):
            raise InputError(f"{where}: given.{name} is {value!r:.20}; give a finite number")
