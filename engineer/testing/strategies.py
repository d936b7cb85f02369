"""Hypothesis strategies of spaces, cells, designs, deltas and answers."""

import itertools
import math
import re
from collections.abc import Callable
from typing import Literal

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import naming_extra
from lakewright.engineer.cells import DECIMALS, Cell, Given, Knob, Stratum
from lakewright.engineer.delta import make_edit
from lakewright.engineer.delta_parsing import MAX_REASON
from lakewright.engineer.design import Delta, Design, DesignRow
from lakewright.engineer.guard import Bounds, can_draw_row
from lakewright.engineer.problems import Problem
from lakewright.engineer.space import DesignSpace, normalize_design

with naming_extra(__name__, "testing"):
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy

MOST_WAYS = 256  # cells of a stratum at bounds and bins; with more, one knob at a time is varied
EVEN = st.integers(0, 99)  # hypothesis draws short ranges evenly
TEXT = st.characters(exclude_categories=["Cs"])
# Texts that raise if a judge asks `isdigit` before `int`, looks at the second letter, or encodes.
CARELESS = ("-", "²", "9" * 5000, "\ud800")
ODD_ANSWERS = ("", "0", "1", "-1", "yes", "A", " ", "\n", "\0", "é", "1e999", "nan", "[]", "{}", "9" * 999, *CARELESS)

LONG, DEEP = 100_000, 20_000  # characters of a text, and brackets within each other, that exhaust parsers
HUGE = ("1e999999999", "1e-999999999", "9**9**9**9")


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
    """Values of a design, from low to high: half of them simple ones, half spread evenly."""
    whole = 1 if knob.whole else 10**DECIMALS
    first, last = round(low * whole), round(high * whole)
    even = st.tuples(EVEN, EVEN).map(lambda digits: first + (100 * digits[0] + digits[1]) * (last - first) // 9999)
    values = st.integers(first, last) | even
    return values if knob.whole else values.map(lambda part: part / whole)


def cells(
    space: DesignSpace, drawable: Callable[[Cell], bool] | None = None, /, **given: float
) -> SearchStrategy[Cell]:
    """Cells of a space, simple ones first; values are read by name, `cell["digits"]`.

    Args:
        space: the design space.
        drawable: accepts the cells that are wanted; by default all that the space allows.
        given: the givens of the cells, by name; by default their middles.

    Raises InputError if no cell at bounds and bins is drawable.
    """
    wanted: Callable[[Cell], bool] = (lambda cell: drawable(space.name_cell(cell))) if drawable else space.allows
    ends = list(filter(wanted, list_cells(space, **given)))
    if not ends:
        raise InputError("cells: no cell at bounds and bins of the knobs can be drawn; correct drawable or the limits")
    bare = st.sampled_from(space.strata).flatmap(lambda stratum: _cells_of(space, stratum)).filter(space.allows)
    design = _only_givens(space, given)
    complete = st.sampled_from(ends) | bare.map(lambda cell: space.complete_cell(cell, design)).filter(wanted)
    return complete.map(space.name_cell)  # as `make` gets them


def _only_givens(space: DesignSpace, given: dict[str, float]) -> Design:
    """No design but its givens: those by name, else their middles."""
    return Design({}, given={one.name: one.middle for one in space.givens} | given)


def _cells_of(space: DesignSpace, stratum: Stratum) -> SearchStrategy[Cell]:
    ways = [
        st.booleans() if knob.trait else _values_between(knob, *space.limits(stratum, knob)) for knob in space.knobs
    ]
    return st.tuples(*ways).map(lambda values: Cell(stratum, values))


def list_cells(space: DesignSpace, /, **given: float) -> list[Cell]:
    """The cells at every bound and bin of the levels, with and without each trait; simple ones of all strata first.

    given: as in `cells`.
    """
    design = _only_givens(space, given)
    ranked: list[tuple[int, Cell]] = []
    for stratum in space.strata:
        ways: list[list[float]] = []
        for knob in space.knobs:
            low, high = space.limits(stratum, knob)
            ways.append([False, True] if knob.trait else sorted({low, high, *knob.list_centres(low, high, knob.bins)}))
        for places in _list_places(list(map(len, ways))):
            values = tuple(way[place] for way, place in zip(ways, places, strict=True))
            ranked.append((sum(places), space.complete_cell(Cell(stratum, values), design)))
    return [cell for _, cell in sorted(ranked, key=lambda item: item[0]) if space.allows(cell)]


def _list_places(lengths: list[int]) -> list[tuple[int, ...]]:
    """The places of all values of some knobs; if these are too many, of one knob at a time, and the last."""
    if math.prod(lengths) <= MOST_WAYS:
        return list(itertools.product(*map(range, lengths)))
    first = (0,) * len(lengths)
    single = [(*first[:knob], at, *first[knob + 1 :]) for knob, length in enumerate(lengths) for at in range(length)]
    return list(dict.fromkeys([*single, tuple(length - 1 for length in lengths)]))


def designs(space: DesignSpace, bounds: Bounds | None = None, /, **given: float) -> SearchStrategy[Design]:
    """Legal designs of a space, of any version but 0.

    Args:
        space: the design space.
        bounds: an environment that can draw all problems of the design.
        given: the givens, by name; by default their middles.
    """
    design = _only_givens(space, given)
    chosen = cells(space, bounds.drawable if bounds else None, **given)
    return _draw_design(space, chosen, bounds, design)


@st.composite
def _draw_design(
    draw: DrawFn, space: DesignSpace, chosen: SearchStrategy[Cell], bounds: Bounds | None, design: Design
) -> Design:
    rows: dict[Stratum, DesignRow] = {}
    for cell in draw(st.lists(chosen, min_size=1, max_size=4, unique_by=lambda cell: cell.stratum)):
        row: DesignRow = {space.share.name: draw(st.integers(1, 9))}
        mixed = dict(row)
        for knob, value in zip(space.knobs, cell.values, strict=True):
            low, high = space.limits(cell.stratum, knob)
            row[knob.name] = min(max(float(value), low), high) if knob.trait else value
            mixed[knob.name] = draw(_values_between(knob, low, high)) if knob.trait else value
        rows[cell.stratum] = mixed if bounds is None or can_draw_row(cell.stratum, mixed, bounds, design.given) else row
    return normalize_design(Design(rows, given=design.given, version=draw(st.integers(1, 9))), space)


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


def list_attacks(right: str) -> list[str]:
    """Texts that exhaust parsers and evaluators: huge exponents, deep nesting, long numbers, long repeats.

    right: an answer, in whose form some of them are.
    """
    numbers = [*HUGE, "1.5e99999999*0", "1/1e999999999", "1e9_999_999", "9" * LONG, "0." + "3" * LONG, "-" * LONG]
    brackets = [left * DEEP + "1" + right_one * DEEP for left, right_one in ("()", "[]", "{}")]
    repeats = ["a" * LONG + "!", " " * LONG + "x", "1+" * DEEP + "1", "1 " * DEEP, "\n" * LONG, '{"a":' * DEEP]
    inside = [re.sub(r"\d+", huge, right, count=1) for huge in (*HUGE, "9" * LONG)] if right else []
    outside = [f"({right})**99999999", f"{right}e999999999", right * max(1, LONG // max(1, len(right)))]
    return list(dict.fromkeys([*numbers, *inside, *outside, *brackets, *repeats]))
