"""Hypothesis strategies of spaces, cells, designs, deltas and answers."""

import itertools
import math
from collections.abc import Callable
from typing import Literal

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import DECIMALS, Cell, Given, Knob, Stratum
from lakewright.engineer.delta import MAX_REASON, make_edit
from lakewright.engineer.design import Delta, Design, Row
from lakewright.engineer.environment import Problem
from lakewright.engineer.guard import Bounds, can_draw
from lakewright.engineer.space import DesignSpace, normalize_design

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
except ImportError as error:
    raise InputError("hypothesis is not installed; pip install 'lakewright[testing]'") from error

MOST_WAYS = 256  # cells of a stratum at bounds and bins; with more, one knob at a time is varied
TEXT = st.characters(exclude_categories=["Cs"])
ODD_ANSWERS = ("", "0", "1", "-1", "yes", "A", " ", "\n", "\0", "é", "1e999", "nan", "[]", "{}", "9" * 999)


@st.composite
def spaces(draw: DrawFn) -> DesignSpace:
    """Spaces of one to four strata and one to three knobs: levels, whole ones and traits, with limits and givens."""
    number = draw(st.integers(1, 4))
    strata: list[Stratum] = (
        list(range(2, 2 + number)) if draw(st.booleans()) else [f"s{rank}" for rank in range(number)]
    )
    knobs = [draw(_draw_knob(f"knob{place}")) for place in range(draw(st.integers(1, 3)))]
    limits: dict[Stratum, dict[str, tuple[float, float]]] = {}
    for stratum in strata:
        if draw(st.booleans()):
            knob = draw(st.sampled_from(knobs))
            values = _values_between(knob, knob.low, knob.high)
            low, high = sorted(draw(st.tuples(values, values)))
            limits[stratum] = {knob.name: (low, high)}
    givens = [Given(name="given", middle=2.0)] if draw(st.booleans()) else []
    return DesignSpace(strata, knobs, limits=limits, ranked=draw(st.booleans()), givens=givens)


@st.composite
def _draw_knob(draw: DrawFn, name: str) -> Knob:
    harder: Literal[-1, 0, 1] = draw(st.sampled_from([1, 0, -1]))
    kind = draw(st.sampled_from(["whole", "level", "trait"]))
    if kind == "trait":
        return Knob(name=name, trait=True, harder=harder)
    low, width, whole = draw(st.integers(-3, 3)), draw(st.integers(0, 9)), kind == "whole"
    return Knob(name=name, low=low, high=low + width, whole=whole, step=1.0 if whole else 0.1, harder=harder)


def _values_between(knob: Knob, low: float, high: float) -> SearchStrategy[float]:
    """Values of a design, from low to high."""
    if knob.whole:
        return st.integers(round(low), round(high))
    whole = 10**DECIMALS
    return st.integers(round(low * whole), round(high * whole)).map(lambda part: part / whole)


def cells(space: DesignSpace, drawable: Callable[[Cell], bool] | None = None) -> SearchStrategy[Cell]:
    """Cells of a space, simple ones first. drawable: which of them are wanted; by default all that the space allows.

    Raises InputError where none of the cells at bounds and bins is.
    """
    ends = [cell for cell in list_cells(space) if drawable is None or drawable(cell)]
    if not ends:
        raise InputError("cells: none at the bounds and bins of the knobs can be drawn; correct drawable or the limits")
    between = st.sampled_from(space.strata).flatmap(lambda stratum: _cells_of(space, stratum)).filter(space.allows)
    return st.sampled_from(ends) | (between.filter(drawable) if drawable else between)


def _cells_of(space: DesignSpace, stratum: Stratum) -> SearchStrategy[Cell]:
    ways = [
        st.booleans() if knob.trait else _values_between(knob, *space.limits(stratum, knob)) for knob in space.knobs
    ]
    return st.tuples(*ways).map(lambda values: Cell(stratum, values))


def list_cells(space: DesignSpace) -> list[Cell]:
    """The cells at every bound and bin of the levels, with and without each trait; simple ones of all strata first."""
    found: list[tuple[int, Cell]] = []
    for stratum in space.strata:
        ways: list[list[float]] = []
        for knob in space.knobs:
            low, high = space.limits(stratum, knob)
            ways.append([False, True] if knob.trait else sorted({low, high, *knob.list_centres(low, high, knob.bins)}))
        for places in _list_places(list(map(len, ways))):
            values = tuple(way[place] for way, place in zip(ways, places, strict=True))
            found.append((sum(places), Cell(stratum, values)))
    return [cell for _, cell in sorted(found, key=lambda item: item[0]) if space.allows(cell)]


def _list_places(lengths: list[int]) -> list[tuple[int, ...]]:
    """The places of all values of some knobs; where these are too many, of one knob at a time, and the last."""
    if math.prod(lengths) <= MOST_WAYS:
        return list(itertools.product(*map(range, lengths)))
    first = (0,) * len(lengths)
    single = [(*first[:knob], at, *first[knob + 1 :]) for knob, length in enumerate(lengths) for at in range(length)]
    return list(dict.fromkeys([*single, tuple(length - 1 for length in lengths)]))


def designs(space: DesignSpace, bounds: Bounds | None = None, **given: float) -> SearchStrategy[Design]:
    """Legal designs of a space. bounds: an environment that can draw all problems of the design. given: its givens."""
    chosen = cells(space, bounds.drawable if bounds else None)
    return _draw_design(space, chosen, bounds, given)


@st.composite
def _draw_design(
    draw: DrawFn, space: DesignSpace, chosen: SearchStrategy[Cell], bounds: Bounds | None, given: dict[str, float]
) -> Design:
    rows: dict[Stratum, Row] = {}
    for cell in draw(st.lists(chosen, min_size=1, max_size=4, unique_by=lambda cell: cell.stratum)):
        row: Row = {space.share.name: draw(st.integers(1, 9))}
        mixed = dict(row)
        for knob, value in zip(space.knobs, cell.values, strict=True):
            low, high = space.limits(cell.stratum, knob)
            row[knob.name] = min(max(float(value), low), high) if knob.trait else value
            mixed[knob.name] = draw(_values_between(knob, low, high)) if knob.trait else value
        rows[cell.stratum] = mixed if bounds is None or can_draw(cell.stratum, mixed, bounds) else row
    known = {one.name: one.middle for one in space.givens} | given
    return normalize_design(Design(rows, given=known), space)


def deltas(space: DesignSpace, design: Design | None = None) -> SearchStrategy[Delta]:
    """Any delta that the schema allows. design: whose strata it edits; by default all of the space."""
    strata = tuple(design.strata) if design else space.strata
    most = {column.name: max(1.0, column.span) for column in space.columns}
    changes = {name: st.just(0.0) | st.floats(-change, change) for name, change in most.items()}
    reasons = st.text(TEXT, min_size=1, max_size=MAX_REASON)
    edits = st.builds(make_edit, st.just(space), changes=st.fixed_dictionaries(changes), reason=reasons)
    return st.dictionaries(st.sampled_from(strata), edits).map(Delta)


def answers(problem: Problem | None = None) -> SearchStrategy[str]:
    """Any text as an answer. problem: whose right answer is among them, also with something wrong about it."""
    odd = st.sampled_from(ODD_ANSWERS) | st.integers().map(str) | st.text(max_size=60)
    if problem is None or not problem.answer:
        return odd
    right = problem.answer
    cut = st.integers(0, len(right)).map(lambda place: right[:place])
    return odd | st.just(right) | cut | st.builds(lambda more: right + more, st.text(max_size=9))
