"""Knobs and cells: the numbers by which problems are drawn, and problems drawn alike."""

import functools
import math
import re
from collections.abc import Iterable
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, convert

Stratum: TypeAlias = int | str
"""A class of problems with its own share: a map size, a number of terms, the name of a task."""

Value: TypeAlias = int | float | bool

T = TypeVar("T")

DECIMALS = 6  # values of a design are on this grid, on which sums and differences are exact

STEP, REACH = 0.1, 0.25  # of a knob that states no others, as parts of its range

POINTS = 6  # of a level, of which the difficulty model gives a forecast

RESERVED = ("reason", "stratum", "given", "self")

MOST_BINS = 1000  # of a level

_WHOLE = re.compile("-?(0|[1-9][0-9]{0,99})")  # with more digits it is a name: Python reads no number of thousands


def _check_fields(value: msgspec.Struct, where: str) -> None:
    """Raises InputError if a field has the wrong type: the code of an environment may give anything."""
    for field in msgspec.structs.fields(type(value)):
        convert(getattr(value, field.name), field.type, where, field.name)


def check_grid(values: Iterable[float], where: str) -> None:
    """Raises InputError if a value is not on the grid of DECIMALS, so that no design can have it."""
    for value in values:
        if value != round(value, DECIMALS):
            near = f"{round(value, DECIMALS):.15g}"
            raise InputError(f"{where}: {value!r:.30} has more than {DECIMALS} decimals; choose {near}")


def is_finite(value: Any) -> bool:
    """Return True if a value is a number that fits into a float, neither infinite nor NaN."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False


def list_parts(what: str, values: Iterable[T], kind: type[Any] = object) -> tuple[T, ...]:
    """The values as a tuple. Raises InputError on a single value, or a value of the wrong type."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{what} is {values!r:.60}; give a tuple of them")
    found = tuple(values)
    if wrong := [one for one in found if not isinstance(one, kind)]:
        raise InputError(f"{what} has {wrong[0]!r:.60}; give {kind.__name__} objects")
    return found


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """A number by which the problems of a stratum are drawn.

    A level is a value that all of them have, `low` to `high`. A trait is the share of them, 0 to 1, that have a
    property which a problem either has or lacks.

    name: an identifier, the field of an edit. meaning: its meaning, for prompts. step: the unit of edits in tokens, or
    by a rule; by default a tenth of the range. reach: the largest change in one round; by default a quarter of the
    range. For whole knobs, these defaults are whole numbers, at least 1. harder: whether problems get harder as it
    rises (1) or falls (-1); 0 if unknown. whole: only whole numbers are drawn. bins: the number of bins that bandits
    count in. told: the values whose forecast is stated in tokens; by default at 20 and 60 % of the range. word:
    its word in tokens and summaries, such as `hole` of `<hole+2>`; by default the name. window: whether a design may
    draw a level from a window, `low` to `high`, and not only from one value.

    Raises InputError if these do not fit together.
    """

    name: str
    meaning: str = ""
    low: float = 0.0
    high: float = 1.0
    step: float = None  # type: ignore[assignment] # which __post_init__ replaces
    reach: float = None  # type: ignore[assignment]
    harder: Literal[-1, 0, 1] = 1
    trait: bool = False
    whole: bool = False
    bins: Count = 5
    told: tuple[float, ...] = ()
    word: str = ""
    window: bool = True

    def __post_init__(self) -> None:
        where = f"knob {self.name!r:.60}"
        for name, part in (("step", STEP), ("reach", REACH)):
            if getattr(self, name) is None and is_finite(self.low) and is_finite(self.high):
                msgspec.structs.force_setattr(self, name, self._find_part(part))
        _check_fields(self, where)
        if not self.name.isidentifier() or self.name in RESERVED or self.name.startswith("_"):
            # An edit holds its reason beside the changes of columns, so a column of that name would be lost.
            raise InputError(f"{where}: its name is a field of edits; choose an identifier other than {RESERVED}")
        if self.low > self.high:
            raise InputError(f"{where}: low is {self.low:g}, greater than high {self.high:g}; swap them")
        check_grid((self.low, self.high, *self.told), where)
        if self.step <= 0 or self.reach < 0:
            name, least = ("step", "more than 0") if self.step <= 0 else ("reach", "at least 0")
            raise InputError(f"{where}: {name} is {getattr(self, name):g}; choose {least}")
        if self.bins > MOST_BINS:
            raise InputError(f"{where}: bins is {self.bins}; choose at most {MOST_BINS}")
        if self.trait and (self.whole or not 0 <= self.low <= self.high <= 1):
            raise InputError(
                f"{where}: a trait is a fraction of the problems; drop `whole` and keep the range within 0 to 1"
            )
        if self.whole and any(value != int(value) for value in (self.low, self.high, *self.told)):
            raise InputError(f"{where}: whole, but from {self.low:g} to {self.high:g}; choose whole numbers")
        if outside := [value for value in self.told if not self.low <= value <= self.high]:
            raise InputError(f"{where}: told has {outside[0]:g}; choose {self.low:g} to {self.high:g}")

    def _find_part(self, part: float) -> float:
        """A part of the range; of an empty range the part itself."""
        share = round(part * self.span, DECIMALS) if self.span > 0 else part
        return max(1, math.ceil(share)) if self.whole else max(share, 10**-DECIMALS)

    @property
    def short(self) -> str:
        """Its word."""
        return self.word or self.name

    @property
    def top(self) -> str:
        """The name of the upper end of its window in rows and edits; empty if it cannot have one."""
        return f"{self.name}_high" if self.window and not self.trait else ""

    @property
    def span(self) -> float:
        """high - low."""
        return self.high - self.low

    def check_value(self, value: Any, limits: tuple[float, float], where: str) -> None:
        """Raises InputError if this is not a value of a design within these limits."""
        low, high = limits
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise InputError(f"{where} is {value!r:.20}; choose {low:g} to {high:g}")
        if self.whole and value != int(value):
            raise InputError(f"{where} is {value:g}; choose a whole number")

    def round_value(self, value: float) -> Value:
        """The nearest value that a design can have, the range aside."""
        return math.floor(value + 0.5) if self.whole else round(value, DECIMALS)

    def convert_value(self, value: Value) -> Value:
        """A value of a cell in its own type: bool of a trait, int of a whole level, else float."""
        return bool(value) if self.trait else round(value) if self.whole else float(value)

    def has_form(self, value: Value) -> bool:
        """Return True if a value has the form of this knob: 0 or 1 of a trait, a whole number of a whole level."""
        return value in (0, 1) if self.trait else not self.whole or value == int(value)

    def list_points(self, low: float, high: float) -> list[Value]:
        """At most POINTS values from low to high, ascending."""
        found = (self.round_value(low + place * (high - low) / (POINTS - 1)) for place in range(POINTS))
        return list(dict.fromkeys(found))

    def list_centres(self, low: float, high: float, bins: int) -> list[Value]:
        """The middles of bins of equal width; of a whole knob with no more values than bins, its values."""
        if self.whole and high - low < bins:
            return list(range(round(low), round(high) + 1))
        width = (high - low) / bins
        return list(dict.fromkeys(self.round_value(low + (place + 0.5) * width) for place in range(bins)))

    def list_stated_values(self) -> tuple[Value, ...]:
        """The values whose forecast is stated in tokens."""
        return self.told or tuple(
            dict.fromkeys(self.list_points(self.low, self.high)[1:4:2] or [self.round_value(self.low)])
        )


SHARE = Knob(name="share", meaning="the share of the problems", step=0.05, reach=0.15, window=False)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A value in which problems differ and that no engineer changes, such as the number of agents; a design states it.

    middle, half: its values become about -1 to 1 for the difficulty model, (value - middle) / half.
    """

    name: str
    middle: float = 0.0
    half: float = 1.0

    def __post_init__(self) -> None:
        where = f"given {self.name!r:.60}"
        _check_fields(self, where)
        if not self.name.isidentifier():
            raise InputError(f"{where}: its name is not an identifier; choose one, such as a_b")
        if not self.half:
            raise InputError(f"{where}: half is 0, but values are divided by it; choose another number")


class Cell(NamedTuple):
    """Problems drawn alike: a stratum, a value of each level, whether they have each trait, and the givens.

    values: one per knob of the space. given: one per given of the space; empty means the design's.
    """

    stratum: Stratum
    values: tuple[Value, ...]
    given: tuple[Value, ...] = ()

    def __str__(self) -> str:
        givens = f" | {' '.join(f'{value:.15g}' for value in self.given)}" if self.given else ""
        return " ".join([str(self.stratum), *(f"{value:.15g}" for value in self.values)]) + givens

    @classmethod
    def from_name(cls, name: str) -> "Cell":
        """The cell of that `str`."""
        head, _, tail = name.partition(" | ")
        stratum, *values = head.split()
        return cls(stratum_of(stratum), tuple(map(float, values)), tuple(map(float, tail.split())))


class NamedCell(Cell):
    """A cell whose values are read by name: `cell["digits"]`. `DesignSpace.name_cell` makes it."""

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()

    def __reduce__(self) -> tuple[Any, ...]:  # pickle finds no class that is made for a space
        return _rebuild_cell, (self.names, *self)

    def __getitem__(self, name):
        """The value of a knob or a given: an int of a whole level, a bool of a trait, else a float."""
        if not isinstance(name, str):
            return tuple.__getitem__(self, name)
        if name not in self.names:
            raise KeyError(f"{name!r} is not a knob; choose from {', '.join(self.names)}")
        found, place = (*self.values, *self.given), self.names.index(name)
        if place >= len(found):
            raise KeyError(f"{name!r} is a given, which this cell lacks; add it by DesignSpace.complete_cell")
        return found[place]


@functools.cache
def name_cells(names: tuple[str, ...]) -> type[NamedCell]:
    """The class of the cells whose values have these names."""
    return type("NamedCell", (NamedCell,), {"names": names, "__slots__": ()})


def _rebuild_cell(names: tuple[str, ...], *fields: Any) -> NamedCell:
    return name_cells(names)(*fields)


def sort_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Cells in order; strata that are numbers come before names."""
    return sorted(cells, key=lambda cell: (isinstance(cell.stratum, str), *cell))


def stratum_of(name: str) -> Stratum:
    """A stratum by its name in a file or a command: digits are a whole number."""
    return int(name) if _WHOLE.fullmatch(name) else name
