"""The design space: what may be changed about an environment, as strata x knobs."""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping
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
from lakewright.engineer.grid import MOST_BINNED, CellGrid
from lakewright.engineer.space_checks import (
    check_design,
    check_names,
    check_ranges,
    check_strata,
    check_tops,
    check_words,
)
from lakewright.engineer.windows import map_levels, round_levels
from lakewright.engineer.words import Words


class DesignSpace(CellGrid):
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
    # Shares are whole numbers of the smallest step here, so that their sum is exactly one.
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
