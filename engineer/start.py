"""The design to begin with: what an environment names, or the values nearest to the middle that can be drawn."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from lakewright.engineer.calls import FailedCallError, run_call
from lakewright.engineer.cells import Stratum, Value
from lakewright.engineer.design import Design, DesignRow
from lakewright.engineer.guard import Bounds, can_draw_row, check_draws
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.space_checks import check_design

TRIED = 1000  # rows of a stratum


class Startable(Bounds, Protocol):
    """The part of an environment that says what to begin with."""

    def start(self) -> Design:
        """The design to begin with."""
        ...


def find_start(environment: Startable) -> Design:
    """`environment.start()`. Raises InputError if it fails, or gives no design of the space that can be drawn."""
    where = f"{type(environment).__name__}.start"
    design = run_call(where, environment.start)
    check_design(design, environment.space, where)
    check_draws(design, environment, where)
    return design


def complete_design(design: Design, environment: Startable, where: str = "design") -> Design:
    """A user's design as version 0, with the environment's givens if it has no givens, because a file has strata alone.

    Raises InputError, whose message begins with `where`, if it isn't a design of the space.
    """
    if isinstance(design, Design) and environment.space.givens and not design.given:
        design = msgspec.structs.replace(design, given=find_start(environment).given)
    check_design(design, environment.space, where)
    return msgspec.structs.replace(design, version=0)


def choose_start(bounds: Bounds, /, **given: float) -> Design:
    """Equal shares, and for each stratum middle values, or if these cannot be drawn the nearest of some that can.

    given: as in `DesignSpace.uniform`. Raises InputError if all of TRIED rows of a stratum fail.
    """
    space, middle = bounds.space, bounds.space.uniform(**given)
    rows: dict[Stratum, DesignRow] = {}
    for stratum, usual in middle.strata.items():
        ways = _list_rows(space, stratum, usual)
        found = next((row for row in ways if can_draw_row(stratum, row, bounds, middle.given)), None)
        if found is None:
            sought = f"no {space.words.problems} of {space.words.label(stratum)} were found that can be drawn"
            raise FailedCallError(f"{type(bounds).__name__}.start: {sought}; override start or correct drawable")
        rows[stratum] = found
    return space.design(rows, **middle.given)


def _list_rows(space: DesignSpace, stratum: Stratum, usual: DesignRow) -> Iterator[DesignRow]:
    """The usual row, and others with the values of some knobs changed, from near to far."""
    yield usual
    ways: list[list[tuple[float, Value]]] = []
    for knob in space.knobs:
        low, high = space.limits(stratum, knob)
        middle, values = usual[knob.name], [low, high] if knob.trait else knob.list_points(low, high)
        ways.append(sorted((abs(value - middle) / (knob.span or 1), value) for value in {middle, *values}))
    # Sorted after the cut: the product runs through the last knobs first, so the cut alone would favour these.
    for way in sorted(itertools.islice(itertools.product(*ways), TRIED), key=lambda way: sum(part[0] for part in way)):
        yield {**usual, **{knob.name: value for knob, (_, value) in zip(space.knobs, way, strict=True)}}


class Drawing(Startable, Protocol):
    """An environment that draws problems."""

    def draw(self, design: Design, count: int, seed: int) -> Sequence[object]:
        """Problems of a design."""
        ...


def check_design_draws(environment: Drawing, design: Design) -> None:
    """Draws one problem of each stratum that a design has a share of. Raises InputError if one cannot be drawn."""
    share = environment.space.share.name
    for stratum, row in design.strata.items():
        if row[share]:
            environment.draw(design.replace({stratum: {**row, share: 1.0}}), 1, seed=0)
