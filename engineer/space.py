"""The design space: what may be changed about an environment, as strata x knobs, and the cells of its problems."""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.words import Words

if TYPE_CHECKING:
    from lakewright.engineer.design import Design

Stratum: TypeAlias = int | str
"""A part of the problems with a share of its own: a map size, a number of terms, the name of a task."""
Value: TypeAlias = int | float | bool

DECIMALS = 6  # values of a design are on this grid, on which sums and differences are exact
POINTS = 6  # of a level, of which the difficulty model gives a forecast
MOST_CELLS = 64  # of a stratum in a forecast; with more, one knob at a time is varied
MOST_BINNED = 4096  # cells of a grid of bins
MOST_TOLD = 16  # cells of a stratum in tokens
RESERVED = ("reason", "stratum", "given")
_STRATUM = re.compile(r"[\w.:/+-]{1,60}")


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """A number by which the problems of a stratum are drawn.

    A level is a value that all of them have, `low` to `high`. A trait is the share of them, 0 to 1, that have a
    property which a problem either has or lacks.

    name: an identifier, the field of an edit. meaning: what it is, for prompts. step: of an edit in tokens, or by a
    rule. reach: the largest change in one round. harder: whether problems get harder as it rises (1) or falls (-1); 0
    where nobody knows. whole: only whole numbers are drawn. bins: the number of bins that bandits count in. told: the
    values of which a forecast in tokens speaks; by default a fifth and three fifths of the way up. word: its word in
    tokens and summaries, such as `hole` of `<hole+2>`; by default the name.

    Raises InputError where these do not fit together.
    """

    name: str
    meaning: str = ""
    low: float = 0.0
    high: float = 1.0
    step: float = 0.1
    reach: float = 0.25
    harder: Literal[-1, 0, 1] = 1
    trait: bool = False
    whole: bool = False
    bins: int = 5
    told: tuple[float, ...] = ()
    word: str = ""

    def __post_init__(self) -> None:
        where = f"knob {self.name!r:.60}"
        if not self.name.isidentifier() or self.name in RESERVED or self.name.startswith("_"):
            raise InputError(f"{where}: its name is a field of an edit; choose an identifier, none of {RESERVED}")
        if not all(map(math.isfinite, (self.low, self.high, self.step, self.reach))):
            raise InputError(f"{where}: low, high, step and reach must be finite numbers")
        if self.low > self.high:
            raise InputError(f"{where}: low is {self.low:g}, above high {self.high:g}; exchange them")
        if self.step <= 0 or self.reach < 0 or self.bins < 1:
            raise InputError(f"{where}: step is {self.step:g}, reach {self.reach:g}, bins {self.bins}; choose more")
        if self.trait and (self.whole or not 0 <= self.low <= self.high <= 1):
            raise InputError(f"{where}: a trait is a share of the problems; leave out whole, and choose 0 to 1")
        if self.whole and any(value != int(value) for value in (self.low, self.high, *self.told)):
            raise InputError(f"{where}: whole, but its range is {self.low:g} to {self.high:g}; choose whole numbers")
        if outside := [value for value in self.told if not self.low <= value <= self.high]:
            raise InputError(f"{where}: told has {outside[0]:g}, which is not {self.low:g} to {self.high:g}")

    @property
    def short(self) -> str:
        """Its word."""
        return self.word or self.name

    @property
    def span(self) -> float:
        """high - low."""
        return self.high - self.low

    def rounded(self, value: float) -> Value:
        """The nearest value that a design can have, the range aside."""
        return math.floor(value + 0.5) if self.whole else round(value, DECIMALS)

    def natural(self, value: Value) -> Value:
        """A value of a cell in its own type: bool of a trait, int of a whole level, else float."""
        return bool(value) if self.trait else round(value) if self.whole else float(value)

    def points(self, low: float, high: float) -> list[Value]:
        """At most POINTS values from low to high, ascending."""
        found = (self.rounded(low + place * (high - low) / (POINTS - 1)) for place in range(POINTS))
        return list(dict.fromkeys(found))

    def centres(self, low: float, high: float, bins: int) -> list[Value]:
        """The middles of bins of equal width; of a whole knob with no more values than bins, its values."""
        if self.whole and high - low < bins:
            return list(range(round(low), round(high) + 1))
        width = (high - low) / bins
        return list(dict.fromkeys(self.rounded(low + (place + 0.5) * width) for place in range(bins)))

    def told_values(self) -> tuple[Value, ...]:
        """The values of which a forecast in tokens speaks."""
        return self.told or tuple(dict.fromkeys(self.points(self.low, self.high)[1:4:2] or [self.rounded(self.low)]))


SHARE = Knob(name="share", meaning="the share of the problems", step=0.05, reach=0.15)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What problems differ in and no engineer changes, such as the number of agents; a design states its value.

    middle, half: its values become about -1 to 1 for the difficulty model, (value - middle) / half.
    """

    name: str
    middle: float = 0.0
    half: float = 1.0


class Cell(NamedTuple):
    """Problems drawn alike: a stratum, a value of each level, whether they have each trait, and the givens.

    values: by the knobs of the space. given: by its givens; empty for those of the design.
    """

    stratum: Stratum
    values: tuple[Value, ...]
    given: tuple[Value, ...] = ()

    def __str__(self) -> str:
        givens = f" | {' '.join(f'{value:.15g}' for value in self.given)}" if self.given else ""
        return " ".join([str(self.stratum), *(f"{value:.15g}" for value in self.values)]) + givens

    @classmethod
    def named(cls, name: str) -> "Cell":
        """The cell of that `str`."""
        head, _, tail = name.partition(" | ")
        stratum, *values = head.split()
        return cls(stratum_of(stratum), tuple(map(float, values)), tuple(map(float, tail.split())))


class NamedCell(Cell):
    """A cell whose values are read by name: `cell["digits"]`. `DesignSpace.name_cell` makes it."""

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()

    def __getitem__(self, name):
        """The value of a knob or a given: an int of a whole level, a bool of a trait, else a float."""
        if not isinstance(name, str):
            return tuple.__getitem__(self, name)
        if name not in self.names:
            raise KeyError(f"{name!r} is no knob; choose from {', '.join(self.names)}")
        return (*self.values, *self.given)[self.names.index(name)]


def stratum_of(name: str) -> Stratum:
    """A stratum from a name in a file or a command: a name that is a whole number is that number."""
    return int(name) if re.fullmatch(r"-?(0|[1-9]\d*)", name) else name


class DesignSpace:
    """What may be changed about an environment: strata x knobs, with a share of the problems for each stratum."""

    def __init__(
        self,
        strata: Iterable[Stratum],
        knobs: Iterable[Knob],
        *,
        share: Knob = SHARE,
        limits: Mapping[Stratum, Mapping[str, tuple[float, float]]] | None = None,
        scale: Callable[[Stratum], float] | None = None,
        ranked: bool = True,
        givens: Iterable[Given] = (),
        failures: Iterable[str] = ("wrong",),
        grades: Iterable[str] = (),
        words: Words | None = None,
        spoken: Iterable[Stratum] | None = None,
    ) -> None:
        """Makes a space.

        strata: all that there are, from easy to hard where `ranked`; a design may name some of them.
        knobs: the levels and traits.
        share: the knob of the shares of the strata.
        limits: narrower ranges of knobs, by stratum; low = high where a stratum lacks a knob.
        scale: the place of a stratum on a smooth axis, about -1 to 1; by default evenly by rank.
        ranked: whether the strata are ordered from easy to hard. Else the difficulty model knows each by itself.
        givens: what problems differ in and nobody edits.
        failures: the names of the ways in which an answer fails.
        grades: what a valid answer may be besides, such as optimal.
        words: how problems, strata and knobs are called in texts.
        spoken: the strata that have tokens; by default all.

        Raises InputError where a name is missing, twice there, or not usable.
        """
        self.strata = tuple(strata)
        self.knobs = tuple(knobs)
        self.share = share
        self.columns = (share, *self.knobs)
        self.givens = tuple(givens)
        self.failures = tuple(failures)
        self.grades = tuple(grades)
        self.ranked = ranked
        self.words = words or Words()
        self.spoken = self.strata if spoken is None else tuple(spoken)
        self.ranks = {stratum: rank for rank, stratum in enumerate(self.strata)}
        self._scale = scale
        self._limits = {stratum: dict(given) for stratum, given in (limits or {}).items()}
        _check_strata(self.strata)
        _check_names("knob", [column.name for column in self.columns] + [given.name for given in self.givens])
        _check_names("failure", self.failures)
        _check_names("grade", self.grades)
        if not self.failures:
            raise InputError("space: failures is empty; name at least one way in which an answer fails")
        self._check_limits()
        names = (*(knob.name for knob in self.knobs), *(given.name for given in self.givens))
        self._named = type("NamedCell", (NamedCell,), {"names": names, "__slots__": ()})

    def _check_limits(self) -> None:
        known = {knob.name: knob for knob in self.knobs}
        for stratum, given in self._limits.items():
            if stratum not in self.ranks:
                raise InputError(f"space: limits name {stratum!r:.60}, which is no stratum; leave it out")
            for name, (low, high) in given.items():
                if name not in known:
                    raise InputError(f"space: limits.{stratum} name {name!r:.60}, which is no knob; leave it out")
                if not known[name].low <= low <= high <= known[name].high:
                    raise InputError(
                        f"space: limits.{stratum}.{name} is {low:g} to {high:g}; choose a part of "
                        f"{known[name].low:g} to {known[name].high:g}"
                    )

    @property
    def levels(self) -> tuple[int, ...]:
        """The places of the levels among the knobs."""
        return tuple(place for place, knob in enumerate(self.knobs) if not knob.trait)

    @property
    def traits(self) -> tuple[int, ...]:
        """The places of the traits among the knobs."""
        return tuple(place for place, knob in enumerate(self.knobs) if knob.trait)

    def limits(self, stratum: Stratum, knob: Knob) -> tuple[float, float]:
        """The range of a knob in a stratum; of the share 0 to 1."""
        return self._limits.get(stratum, {}).get(knob.name, (knob.low, knob.high))

    def scale(self, stratum: Stratum) -> float:
        """The place of a stratum on a smooth axis, about -1 to 1."""
        if self._scale:
            return self._scale(stratum)
        return 2 * self.ranks[stratum] / (len(self.strata) - 1) - 1 if len(self.strata) > 1 else 0.0

    def cell(self, stratum: Stratum, *given: Value, **values: Value) -> Cell:
        """A cell by the names of its knobs. Raises InputError on an unknown stratum, knob or value."""
        if stratum not in self.ranks:
            raise InputError(f"cell: {self.words.stratum} {stratum!r:.60} is unknown; choose from {self._listed()}")
        names = [knob.name for knob in self.knobs]
        if set(values) != set(names):
            raise InputError(f"cell: knobs are {', '.join(values) or 'missing'}; give {', '.join(names)}")
        for knob in self.knobs:
            low, high = (0, 1) if knob.trait else self.limits(stratum, knob)
            if not low <= values[knob.name] <= high:
                raise InputError(f"cell: {knob.name} is {values[knob.name]!r:.20}; choose {low:g} to {high:g}")
        return self.name_cell(Cell(stratum, tuple(knob.natural(values[knob.name]) for knob in self.knobs), given))

    def name_cell(self, cell: Cell) -> Cell:
        """The cell with values that are read by name and are of the types of their knobs."""
        values = tuple(knob.natural(value) for knob, value in zip(self.knobs, cell.values, strict=True))
        return self._named(cell.stratum, values, cell.given)

    def complete_cell(self, cell: Cell, design: "Design") -> Cell:
        """The cell with the givens of a design, where it has none of its own."""
        if cell.given or not self.givens:
            return cell
        return cell._replace(given=tuple(design.given[given.name] for given in self.givens))

    def cells(self, design: "Design") -> dict[Cell, float]:
        """The share of each cell that a design draws from; traits split a stratum, by the products of their shares."""
        found: dict[Cell, float] = {}
        for stratum, row in design.strata.items():
            for values, share in self._values_of(row):
                found[Cell(stratum, values)] = row[self.share.name] * share
        return {cell: share for cell, share in found.items() if share > 0}

    def _values_of(self, row: Mapping[str, float]) -> Iterator[tuple[tuple[Value, ...], float]]:
        """The values of the cells of a stratum and their shares of it; problems that have a trait come first."""
        ways = []
        for knob in self.knobs:
            value = row[knob.name]
            ways.append([(True, value), (False, 1 - value)] if knob.trait else [(value, 1.0)])
        for way in itertools.product(*ways):
            yield tuple(value for value, _ in way), math.prod(share for _, share in way)

    def grid(self, strata: Iterable[Stratum]) -> list[Cell]:
        """The cells of some strata in which bandits count: of each level the centre of a bin, with and without traits.

        By rank of the strata. With many knobs there are fewer bins, so that there are at most MOST_BINNED cells.
        """
        chosen = self.sort_strata(strata)
        bins = self._bins(chosen)
        ways = ((stratum, [self._binned_values(stratum, knob, bins) for knob in self.knobs]) for stratum in chosen)
        return [Cell(stratum, values) for stratum, way in ways for values in itertools.product(*way)]

    def _bins(self, strata: Sequence[Stratum]) -> int:
        """The most bins of a level with which the grid of some strata has at most MOST_BINNED cells."""
        for bins in range(max((knob.bins for knob in self.knobs), default=1), 1, -1):
            sizes = (
                math.prod(len(self._binned_values(stratum, knob, bins)) for knob in self.knobs) for stratum in strata
            )
            if sum(sizes) <= MOST_BINNED:
                return bins
        return 1

    def _binned_values(self, stratum: Stratum, knob: Knob, bins: int) -> list[Value]:
        if knob.trait:
            return self._trait_values(stratum, knob)
        return knob.centres(*self.limits(stratum, knob), min(bins, knob.bins))

    def _trait_values(self, stratum: Stratum, knob: Knob) -> list[Value]:
        low, high = self.limits(stratum, knob)
        found: list[Value] = []
        return [*found, *[False] * (low < 1), *[True] * (high > 0)]

    def allows(self, cell: Cell) -> bool:
        """Whether a cell has only traits that its stratum may have."""
        pairs = ((knob, cell.values[place]) for place, knob in enumerate(self.knobs) if knob.trait)
        return all(bool(value) in self._trait_values(cell.stratum, knob) for knob, value in pairs)

    def bin_cell(self, cell: Cell, strata: Iterable[Stratum]) -> Cell:
        """The cell of the grid of `strata` that holds a cell: of each level the bin of its value."""
        bins = self._bins(self.sort_strata(strata))
        values = []
        for knob, value in zip(self.knobs, cell.values, strict=True):
            centres = self._binned_values(cell.stratum, knob, bins)
            low, high = self.limits(cell.stratum, knob)
            width = (high - low) / len(centres)
            if knob.trait:
                values.append(value)
            elif knob.whole or not width:
                values.append(min(centres, key=lambda centre, value=value: abs(centre - value)))  # type: ignore[misc]
            else:
                values.append(centres[min(len(centres) - 1, int((value - low) / width + 1e-9))])
        return Cell(cell.stratum, tuple(values))

    def siblings(self, cell: Cell) -> list[Cell]:
        """The cells that differ from a cell in their traits alone."""
        ways = [
            self._trait_values(cell.stratum, knob) if knob.trait else [value]
            for knob, value in zip(self.knobs, cell.values, strict=True)
        ]
        return [other for way in itertools.product(*ways) if (other := cell._replace(values=way)) != cell]

    def hardness(self, cell: Cell, strata: Iterable[Stratum]) -> float:
        """How hard a cell's problems are by rank, 0 to 1.

        That is the mean of the levels and traits of known direction and of the rank of the stratum among `strata`, each
        0 to 1; 0.5 where nothing is known.
        """
        parts = []
        for knob, value in zip(self.knobs, cell.values, strict=True):
            if knob.harder and (knob.trait or knob.span):
                place = float(value) if knob.trait else (value - knob.low) / knob.span
                parts.append(place if knob.harder > 0 else 1 - place)
        ordered = self.sort_strata(strata)
        if self.ranked and len(ordered) > 1:
            parts.append(ordered.index(cell.stratum) / (len(ordered) - 1))
        return sum(parts) / len(parts) if parts else 0.5

    def forecast_cells(self, design: "Design") -> list[Cell]:
        """The cells of which the difficulty model gives a forecast, by rank of the design's strata.

        All combinations of the `points` of the levels with and without traits; where a stratum has more than MOST_CELLS
        of them, each knob is varied by itself and the others are as in the design.
        """
        found = []
        for stratum in self.sort_strata(design.strata):
            ways = [
                self._trait_values(stratum, knob) if knob.trait else knob.points(*self.limits(stratum, knob))
                for knob in self.knobs
            ]
            if math.prod(map(len, ways)) <= MOST_CELLS:
                found += [Cell(stratum, values) for values in itertools.product(*ways)]
            else:
                found += self._one_at_a_time(stratum, design.strata[stratum], ways)
        return found

    def _one_at_a_time(self, stratum: Stratum, row: Mapping[str, float], ways: Sequence[list[Value]]) -> list[Cell]:
        usual = tuple(row[knob.name] >= 0.5 if knob.trait else row[knob.name] for knob in self.knobs)
        cells = [
            Cell(stratum, (*usual[:place], value, *usual[place + 1 :]))
            for place, way in enumerate(ways)
            for value in way
        ]
        return list(dict.fromkeys(cells))

    def told_cells(self, stratum: Stratum, cells: Iterable[Cell]) -> list[Cell]:
        """The cells of a stratum whose forecast is told in tokens: all combinations of `told` of the levels and traits.

        With more than MOST_TOLD of them, those among `cells`, the cells of the forecast.
        """
        ways = [(False, True) if knob.trait else knob.told_values() for knob in self.knobs]
        if math.prod(map(len, ways)) <= MOST_TOLD:
            return [Cell(stratum, values) for values in itertools.product(*ways)]
        mine = (cell for cell in cells if cell.stratum == stratum)
        return sorted(cell for cell in mine if all(value in way for value, way in zip(cell.values, ways, strict=True)))

    def design(self, rows: Mapping[Stratum, Mapping[str, float]], **given: float) -> "Design":
        """The design of these rows, checked: a share and a value of each knob for each stratum.

        Shares must sum to one. Raises InputError on an unknown stratum or knob, or a value out of range.
        """
        from lakewright.engineer.design import Design, check_design, normalize

        design = Design({stratum: dict(row) for stratum, row in rows.items()}, given=given)
        check_design(design, self)
        return normalize(design, self)

    def uniform(self, **given: float) -> "Design":
        """Equal shares, and the middle of the range of every knob."""
        rows = {}
        for stratum in self.strata:
            row = {self.share.name: 1 / len(self.strata)}
            for knob in self.knobs:
                low, high = self.limits(stratum, knob)
                row[knob.name] = knob.rounded((low + high) / 2)
            rows[stratum] = row
        return self.design(rows, **given)

    def signature(self) -> str:
        """What a state must have been made with: the strata, columns, ranges and givens."""
        parts = [
            [str(stratum) for stratum in self.strata],
            [[column.name, column.low, column.high, column.trait, column.whole] for column in self.columns],
            [given.name for given in self.givens],
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def sort_strata(self, strata: Iterable[Stratum]) -> list[Stratum]:
        """Strata by rank."""
        return sorted(strata, key=lambda stratum: self.ranks.get(stratum, len(self.ranks)))

    def _listed(self) -> str:
        return ", ".join(map(str, self.strata[:20])) + (", ..." if len(self.strata) > 20 else "")


def _check_strata(strata: Sequence[Stratum]) -> None:
    if not strata:
        raise InputError("space: it has no strata; name at least one")
    for stratum in strata:
        if isinstance(stratum, bool) or not isinstance(stratum, int | str):
            raise InputError(f"space: stratum {stratum!r:.60} is neither a whole number nor a name; use one of these")
        if isinstance(stratum, str) and (not _STRATUM.fullmatch(stratum) or stratum_of(stratum) != stratum):
            raise InputError(
                f"space: stratum {stratum!r:.60} is no name; use letters, digits and ._:/+-, or a whole number itself"
            )
    if len(set(strata)) < len(strata):
        twice = next(stratum for stratum in strata if strata.count(stratum) > 1)
        raise InputError(f"space: stratum {twice!r:.60} is there twice; name each once")


def _check_names(kind: str, names: Sequence[str]) -> None:
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"space: {kind} {name!r:.60} is no identifier; choose letters, digits and _")
        if names.count(name) > 1:
            raise InputError(f"space: {kind} {name!r:.60} is there twice; name each once")
