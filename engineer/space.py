"""The design space: what may be changed about an environment, as strata x knobs."""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.support import convert
from lakewright.engineer.calls import run_short_call
from lakewright.engineer.cells import (
    DECIMALS,
    SHARE,
    Cell,
    Given,
    Knob,
    Stratum,
    Value,
    list_parts,
    name_cells,
)
from lakewright.engineer.design import Design, DesignRow
from lakewright.engineer.space_checks import (
    check_design,
    check_names,
    check_ranges,
    check_strata,
    check_tops,
    check_words,
)
from lakewright.engineer.windows import find_middle, map_levels, round_levels
from lakewright.engineer.words import Words

MOST_CELLS = 64  # of a stratum in a forecast; with more, one knob at a time is varied
MOST_BINNED = 4096  # cells of a grid of bins
MOST_TOLD = 16  # cells of a stratum in tokens


class DesignSpace:
    """The changes that an environment allows: strata x knobs, with a share of the problems for each stratum."""

    def __init__(
        self,
        strata: Iterable[Stratum],
        knobs: Iterable[Knob],
        *,
        share: Knob = SHARE,
        limits: Mapping[Stratum, Mapping[str, tuple[float, float]]] | None = None,
        scale: Callable[[Stratum], float] | None = None,
        ranked: bool = False,
        givens: Iterable[Given] = (),
        failures: Iterable[str] = ("wrong",),
        grades: Iterable[str] = (),
        words: Words | None = None,
        spoken: Iterable[Stratum] | None = None,
    ) -> None:
        """Makes a space.

        Args:
            strata: all strata, from easy to hard if `ranked`; a design may name some of them.
            knobs: the levels and traits.
            share: the knob of the shares of the strata.
            limits: narrower ranges of knobs, by stratum; low = high if a stratum lacks a knob.
            scale: the place of a stratum on a smooth axis, about -1 to 1; by default evenly by rank.
            ranked: whether the strata are ordered from easy to hard; if not, the difficulty model uses no order.
            givens: properties of problems that no edit changes.
            failures: the names of the ways in which an answer fails.
            grades: further properties of valid answers, such as optimal.
            words: names of problems, strata and knobs in texts.
            spoken: the strata that have tokens; by default all.

        Raises InputError if a name is missing, repeated or not usable, or if traits and strata give more than
        MOST_BINNED kinds of problems.
        """
        self.strata = list_parts("space: strata", strata)
        self.knobs = list_parts("space: knobs", knobs, Knob)
        if not isinstance(share, Knob) or (share.low, share.high, share.trait, share.whole) != (0, 1, False, False):
            raise InputError(
                "space: share is not a ratio; give a continuous Knob from 0 to 1, not a trait or whole knob"
            )
        self.share = share
        self.columns = (share, *self.knobs)
        self.givens = list_parts("space: givens", givens, Given)
        self.failures = list_parts("space: failures", failures)
        self.grades = list_parts("space: grades", grades)
        if not isinstance(ranked, bool):
            raise InputError(f"space: ranked is {ranked!r:.20}; give True or False")
        self.ranked = ranked
        self.words = words or Words()
        if not isinstance(self.words, Words) or not (scale is None or callable(scale)):
            raise InputError(f"space: words is {words!r:.60}, scale {scale!r:.60}; give Words and a function")
        self.spoken = self.strata if spoken is None else list_parts("space: spoken", spoken)
        check_strata(self.strata)
        self.ranks = {stratum: rank for rank, stratum in enumerate(self.strata)}
        self._scale = scale
        convert(limits or {}, dict[int | str, dict[str, tuple[float, float]]], "space", "limits")
        self._limits = {stratum: dict(given) for stratum, given in (limits or {}).items()}
        self._check_parts()
        self._names = (*(knob.name for knob in self.knobs), *(given.name for given in self.givens))

    def __repr__(self) -> str:
        knobs = ", ".join(knob.name for knob in self.knobs)
        return f"DesignSpace(strata {self.show_strata()}; knobs {knobs or 'none'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DesignSpace) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.strata, self._names))

    def _check_parts(self) -> None:
        columns = [column.name for column in self.columns]
        if self.share.name in columns[1:]:
            said = f"space: knob {self.share.name!r:.60} has the name of the share of a stratum, which every row has"
            raise InputError(f"{said}; choose another name")
        check_names("knob", columns)
        check_tops(self.knobs)
        check_names("word", [column.short for column in self.columns])
        check_names("given", [given.name for given in self.givens], taken=columns)
        check_names("failure", self.failures, taken=("too_easy", "too_hard", "frontier"))  # reasons of edits, too
        check_names("grade", self.grades)
        if not self.failures:
            raise InputError("space: failures is empty; name at least one way in which an answer fails")
        check_ranges(self._limits, self.strata, self.knobs)
        check_words(self.words, self.knobs)
        if strange := [stratum for stratum in self.spoken if stratum not in self.strata]:
            raise InputError(f"space: spoken has {strange[0]!r:.60}, which is not a stratum; leave it out")
        cells = sum(math.prod(map(len, self._list_binned_values(stratum, 1))) for stratum in self.strata)
        if cells > MOST_BINNED:
            said = f"space: its traits give {cells} kinds of problems, more than {MOST_BINNED}"
            raise InputError(f"{said}; choose fewer traits, fewer strata, or limits of 0 or 1 for some")

    def has_stratum(self, stratum: Any) -> bool:
        """Return True if this is a stratum of the space, by value and type: 1.0 and True are not 1."""
        return isinstance(stratum, int | str) and not isinstance(stratum, bool) and stratum in self.ranks

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

    def reachable(self, stratum: Stratum, knob: Knob) -> tuple[float, float]:
        """The range of a knob for proposals; of a trait 0 to 1 because the guard decides what can be drawn."""
        return (0.0, 1.0) if knob.trait else self.limits(stratum, knob)

    def scale(self, stratum: Stratum) -> float:
        """The place of a stratum on a smooth axis, about -1 to 1."""
        if self._scale:
            place = run_short_call(lambda: f"space: scale of {stratum!r:.60}", self._scale, stratum)
            if not (isinstance(place, Real) and math.isfinite(place)):
                raise InputError(f"space: scale of {stratum!r:.60} gave {place!r:.20}; return a finite number")
            return place
        return 2 * self.ranks[stratum] / (len(self.strata) - 1) - 1 if len(self.strata) > 1 else 0.0

    def cell(self, stratum: Stratum, *given: Value, **values: Value) -> Cell:
        """A cell by the names of its knobs. Raises InputError on an unknown stratum, knob or value."""
        if not self.has_stratum(stratum):
            raise InputError(
                f"cell: {self.words.stratum} {stratum!r:.60} is unknown; {suggest(stratum, self.strata[:20])}"
            )
        names = [knob.name for knob in self.knobs]
        if set(values) != set(names):
            raise InputError(f"cell: knobs are {', '.join(values) or 'missing'}; give {', '.join(names)}")
        for knob in self.knobs:
            value = values[knob.name]
            if knob.trait and not isinstance(value, bool) and value not in (0, 1):
                raise InputError(f"cell: {knob.name} is {value!r:.20}; choose True or False")
            if not knob.trait:
                knob.check_value(value, self.limits(stratum, knob), f"cell: {knob.name}")
        if wrong := [value for value in given if not isinstance(value, int | float)]:
            raise InputError(f"cell: given is {wrong[0]!r:.20}; give numbers")
        return self.name_cell(Cell(stratum, tuple(values[name] for name in names), given))

    def name_cell(self, cell: Cell) -> Cell:
        """The cell with values that are read by name and are of the types of their knobs."""
        values = tuple(knob.convert_value(value) for knob, value in zip(self.knobs, cell.values, strict=True))
        return name_cells(self._names)(cell.stratum, values, cell.given)

    def complete_cell(self, cell: Cell, design: Design) -> Cell:
        """The cell with the givens of a design, if it has no givens itself."""
        if cell.given or not self.givens:
            return cell
        return cell._replace(given=tuple(design.given[given.name] for given in self.givens))

    def cells(self, design: Design) -> dict[Cell, float]:
        """The share of each cell that a design draws from; traits split a stratum, by the products of their shares."""
        found: dict[Cell, float] = {}
        for stratum, row in design.strata.items():
            levels, ways = map_levels(row, self.knobs), []
            for knob in self.knobs:
                values = levels[knob.name]
                having = [(True, values[0]), (False, 1 - values[0])]
                ways.append(having if knob.trait else [(value, 1 / len(values)) for value in values])
            for way in itertools.product(*ways):  # problems that have a trait come first
                share = row[self.share.name] * math.prod(part for _, part in way)
                found[Cell(stratum, tuple(value for value, _ in way))] = share
        return {cell: share for cell, share in found.items() if share > 0}

    def grid(self, strata: Iterable[Stratum]) -> list[Cell]:
        """The cells of some strata in which bandits count: for each level the centre of a bin, with and without traits.

        By rank of the strata. With many knobs there are fewer bins, so that there are at most MOST_BINNED cells.
        """
        chosen = self.sort_strata(strata)
        bins = self._choose_bins(chosen)
        ways = ((stratum, self._list_binned_values(stratum, bins)) for stratum in chosen)
        return [Cell(stratum, values) for stratum, way in ways for values in itertools.product(*way)]

    def _choose_bins(self, strata: Sequence[Stratum]) -> int:
        """The largest number of bins of a level such that the grid of some strata has at most MOST_BINNED cells."""
        for bins in range(max((knob.bins for knob in self.knobs), default=1), 1, -1):
            ways = (self._list_binned_values(stratum, bins) for stratum in strata)
            if sum(math.prod(map(len, way)) for way in ways) <= MOST_BINNED:
                return bins
        return 1

    def _list_binned_values(self, stratum: Stratum, bins: int) -> list[list[Value]]:
        return self._list_values(stratum, lambda knob, low, high: knob.list_centres(low, high, min(bins, knob.bins)))

    def _list_values(self, stratum: Stratum, choose: Callable[[Knob, float, float], list[Value]]) -> list[list[Value]]:
        """The values that each knob may have: for a trait those that are allowed, of a level those that are chosen."""
        return [
            self.list_trait_values(stratum, knob) if knob.trait else choose(knob, *self.limits(stratum, knob))
            for knob in self.knobs
        ]

    def list_trait_values(self, stratum: Stratum, knob: Knob) -> list[Value]:
        """The values of a trait that a stratum's problems may have."""
        low, high = self.limits(stratum, knob)
        return [*[False] * (low < 1), *[True] * (high > 0)]

    def allows(self, cell: Cell) -> bool:
        """Whether a cell has only traits that its stratum may have."""
        pairs = ((knob, cell.values[place]) for place, knob in enumerate(self.knobs) if knob.trait)
        return all(bool(value) in self.list_trait_values(cell.stratum, knob) for knob, value in pairs)

    def bin_cell(self, cell: Cell, strata: Iterable[Stratum]) -> Cell:
        """The cell of the grid of `strata` that holds a cell: for each level the bin of its value."""
        ways = self._list_binned_values(cell.stratum, self._choose_bins(self.sort_strata(strata)))
        values = []
        for knob, value, centres in zip(self.knobs, cell.values, ways, strict=True):
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
            self.list_trait_values(cell.stratum, knob) if knob.trait else [value]
            for knob, value in zip(self.knobs, cell.values, strict=True)
        ]
        return [other for way in itertools.product(*ways) if (other := cell._replace(values=way)) != cell]

    def hardness(self, cell: Cell, strata: Iterable[Stratum]) -> float:
        """The difficulty of a cell's problems by rank, 0 to 1.

        That is the mean of the levels and traits of known direction and of the rank of the stratum among `strata`, each
        0 to 1; 0.5 if nothing is known.
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

    def forecast_cells(self, design: Design) -> list[Cell]:
        """The cells of which the difficulty model gives a forecast, by rank of the design's strata.

        All combinations of `Knob.list_points` of the levels, with and without traits; if a stratum has more than
        MOST_CELLS of them, each knob is varied by itself and the others are as in the design.
        """
        found = []
        for stratum in self.sort_strata(design.strata):
            ways = self._list_values(stratum, Knob.list_points)
            if math.prod(map(len, ways)) <= MOST_CELLS:
                found += [Cell(stratum, values) for values in itertools.product(*ways)]
            else:
                found += self._one_at_a_time(stratum, design.strata[stratum], ways)
        return found

    def _one_at_a_time(self, stratum: Stratum, row: Mapping[str, float], ways: Sequence[list[Value]]) -> list[Cell]:
        usual = self.list_usual(row)
        values = [(*usual[:place], value, *usual[place + 1 :]) for place, way in enumerate(ways) for value in way]
        return [Cell(stratum, way) for way in dict.fromkeys(values)]

    def list_usual(self, row: Mapping[str, float]) -> tuple[Value, ...]:
        """A value of each knob that problems of a row have: of windows the middle, and traits that most have."""
        middles = ((knob, find_middle(row, knob)) for knob in self.knobs)
        return tuple(
            value >= 0.5 if knob.trait else knob.round_value(value) if knob.top in row else value
            for knob, value in middles
        )

    def list_stated_cells(self, stratum: Stratum, cells: Iterable[Cell]) -> list[Cell]:
        """The cells of a stratum whose forecast the tokens state: all combinations of `told` of the levels and traits.

        With more than MOST_TOLD of them, those among `cells`, the cells of the forecast.
        """
        ways = [(False, True) if knob.trait else knob.list_stated_values() for knob in self.knobs]
        if math.prod(map(len, ways)) <= MOST_TOLD:
            return [Cell(stratum, values) for values in itertools.product(*ways)]
        mine = (cell for cell in cells if cell.stratum == stratum)
        return sorted(cell for cell in mine if all(value in way for value, way in zip(cell.values, ways, strict=True)))

    def design(self, rows: Mapping[Stratum, Mapping[str, float]], /, **given: float) -> Design:
        """The design of these rows, checked: a share and a value of each knob for each stratum.

        Shares must sum to one. Raises InputError on an unknown stratum or knob, or a value out of range.
        """
        if not isinstance(rows, Mapping) or not all(isinstance(row, Mapping) for row in rows.values()):
            raise InputError(f"design: {rows!r:.60} is not a table; give a row of share and knobs for each stratum")
        design = Design({stratum: dict(row) for stratum, row in rows.items()}, given=given)
        check_design(design, self)
        return normalize_design(design, self)

    def uniform(self, /, **given: float) -> Design:
        """Equal shares, the middle of the range of every knob, and of every given that is not stated."""
        share = {self.share.name: 1 / len(self.strata)}
        middles = {
            stratum: {knob.name: knob.round_value(sum(self.limits(stratum, knob)) / 2) for knob in self.knobs}
            for stratum in self.strata
        }
        usual = {one.name: one.middle for one in self.givens}
        return self.design({stratum: share | row for stratum, row in middles.items()}, **usual | given)

    def signature(self) -> str:
        """The parts that a saved state must agree with: the strata, columns, ranges and givens."""
        columns = [[column.name, column.low, column.high, column.trait, column.whole] for column in self.columns]
        parts = [list(map(str, self.strata)), columns, [given.name for given in self.givens]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def sort_strata(self, strata: Iterable[Stratum]) -> list[Stratum]:
        """Strata by rank."""
        return sorted(strata, key=lambda stratum: self.ranks.get(stratum, len(self.ranks)))

    def show_strata(self) -> str:
        """The strata for a message, the first of them."""
        return ", ".join(map(str, self.strata[:20])) + (", ..." if len(self.strata) > 20 else "")


def normalize_rows(rows: Mapping[Stratum, Mapping[str, float]], space: DesignSpace) -> dict[Stratum, DesignRow]:
    """The rows with shares on the grid of DECIMALS that sum to one, by largest remainder; the others rounded.

    Shares are taken relative to their sum; if it is 0, they are equal.
    """
    whole, share = 10**DECIMALS, space.share.name
    total = math.fsum(row[share] for row in rows.values())
    parts = [row[share] / total * whole if total else whole / len(rows) for row in rows.values()]
    floors = [math.floor(part) for part in parts]
    order = sorted(range(len(parts)), key=lambda place: floors[place] - parts[place])
    for place in order[: whole - sum(floors)]:
        floors[place] += 1
    return {
        stratum: {share: part / whole, **round_levels(row, space.knobs)}
        for part, (stratum, row) in zip(floors, rows.items(), strict=True)
    }


def normalize_design(design: Design, space: DesignSpace) -> Design:
    """The design with normalized rows."""
    return design.replace(normalize_rows(design.strata, space))
