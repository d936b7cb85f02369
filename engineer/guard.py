"""The guard: projects a proposal onto designs that are legal, within reach and drawable, and reports its changes."""

import itertools
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import FailedCallError, run_short_call, show
from lakewright.engineer.cells import Cell, Knob, Stratum, is_finite
from lakewright.engineer.delta import edit_design
from lakewright.engineer.design import Delta, Design, DesignRow, Edit
from lakewright.engineer.space import DesignSpace, normalize_rows
from lakewright.engineer.windows import check_size, find_ends, make_window, replace_window, write_ends

MOST_WAYS = 1000  # in which knobs of a stratum go back to what can be drawn
SAME_VALUE = 1e-3  # a value this near to what was proposed counts as accepted


class Bounds(Protocol):
    """The part of an environment that the guard needs."""

    @property
    def space(self) -> DesignSpace:
        """The design space."""
        ...

    def drawable(self, cell: Cell) -> bool:
        """Return True if problems of a cell can be drawn."""
        ...


class GivenBounds(NamedTuple):
    """Bounds of a space in which a function says what can be drawn."""

    space: DesignSpace
    drawable: Callable[[Cell], bool]


class GuardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The legal region, and how far one round may go. Raises InputError on a value outside its range."""

    floor: float | None = None
    """Least share of a stratum, 0 to 1; by default 0.02, or a fifth of an equal share if that is less."""
    reach: dict[str, float] = {}
    """Largest change of the share and of knobs in one round, by name; by default the reach in the space."""
    most: dict[str, float] = {}
    """Upper limits of knobs, by name; by default the space's."""
    widen: float = 2.0
    """How much larger a change may be if the difficulty model is certain: the factor is 1 + widen x certainty; at least
    0."""
    tries: int = 3
    """How often the engineer is asked before a refusal is final, at least 1."""

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise InputError(f"guard: tries is {self.tries}; choose at least 1")
        if not 0 <= self.widen <= 100:
            raise InputError(f"guard: widen is {self.widen:g}; choose 0 to 100")
        if self.floor is not None and not 0 <= self.floor <= 1:
            raise InputError(f"guard: floor is {self.floor:g}; choose 0 to 1")
        for name, reach in self.reach.items():
            if not 0 <= reach < math.inf:
                raise InputError(f"guard: reach.{name} is {reach:g}; choose at least 0")

    def least_share(self, strata: int) -> float:
        """The least share of a stratum, if there are `strata` of them."""
        return min(0.02, 0.2 / strata) if self.floor is None else self.floor

    def reach_of(self, column: Knob) -> float:
        """The largest change of a column in one round."""
        return self.reach.get(column.name, column.reach)


def limit_round(settings: GuardSettings, space: DesignSpace, certainty: float) -> GuardSettings:
    """Scales the largest changes by 1 + widen x certainty.

    Args:
        settings, space: the limits, and the space whose columns they limit.
        certainty: the difficulty model's certainty, 0 to 1.
    """
    # Small steps are caution about a model that may be wrong. The surer it is of the held-out cells, the less caution
    # is needed.
    factor = 1 + settings.widen * certainty
    reach = {column.name: factor * settings.reach_of(column) for column in space.columns}
    return msgspec.structs.replace(settings, reach=settings.reach | reach)


class GuardVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict on a proposal: `design` is what to train on next, `reasons` say if it is not what was proposed."""

    status: Literal["accepted", "projected", "refused"]
    reasons: list[str]
    design: Design

    def summary(self) -> str:
        """The verdict in a line."""
        return f"{self.status}: {'; '.join(self.reasons)}" if self.reasons else self.status


def project_delta(
    design: Design, delta: Delta, bounds: Bounds, settings: GuardSettings, held: Container[Stratum] = ()
) -> GuardVerdict:
    """Applies `delta` to `design` and projects the sum onto the legal region within reach of `design`.

    Args:
        design: the current one.
        delta: proposed changes.
        bounds: the environment.
        settings: limits and reach.
        held: the strata that get no more than the floor, because their graders may be broken.

    The legal region, for shares d of m strata and values k of a knob:
        d_s >= floor,  sum_s d_s = 1,  low <= k_s <= min(high, most).
    The trust region: abs(d'_s - d_s) <= reach, and likewise for each knob.

    Shares: with r = clip(d + change, 0, 1) and excess e_s = max(r_s - floor, 0), the goal is
        P(r)_s = floor + (1 - m floor) e_s / sum(e)            (equal shares if no stratum has an excess),
    and d' = d + t (P(r) - d), with the largest t <= 1 inside the trust region: sum and floor hold along the whole line.
    A `design` below the floor is first moved along the line to P(d), then toward P(r), as far as the trust region of d
    reaches; if that ends short of the floor, the next round's non-empty delta continues.
    Strata in `held` are at most at the floor in d and in r, whatever the trust region; what they lose
    in d goes to the others in proportion. So it does in r if no other stratum has an excess.
    Knobs: clip to the limits, then to the trust region around the current value; whole knobs go by whole numbers, by
    one where their reach is between 0 and 1. Of a window both ends are projected so.

    If a stratum's problems cannot be drawn, the fewest of its knobs stay as they were, the last ones first. All do
    after MOST_WAYS were tried. If not even that helps, the proposal is refused. The design is on the grid of six
    decimals.

    A value within 0.001 of the proposal counts as accepted. A delta without edits changes nothing. An unknown
    stratum, a number that is not finite, and more windows than can be drawn are refused, and `design` stays. Raises
    InputError only if `settings` do not suit `design` (floor x strata > 1) or its space (`check_guard`), or if
    `drawable` fails.
    """
    space = bounds.space
    check_guard(settings, len(design.strata), space)
    if not delta.edits:
        return GuardVerdict("accepted", [], design)
    try:
        check_changes(delta, space)
        proposed = edit_design(design, delta, space)
        rows = normalize_rows(_project_rows(design, proposed, space, settings, held), space)
        for stratum, row in rows.items():
            check_size(row, space.knobs, f"edits.{stratum}")
    except InputError as error:
        return GuardVerdict("refused", [str(error)], design)
    applied, missing = _keep_drawable(design, rows, bounds)
    if applied is None:
        return GuardVerdict("refused", missing, design)
    # The teacher reads these reasons in the history, so they name the value that it gave and the value that it got.
    reasons = [*_list_differences(proposed, applied, space), *missing]
    return GuardVerdict("projected" if reasons else "accepted", reasons, design.replace(applied))


def check_guard(settings: GuardSettings, strata: int, space: DesignSpace) -> None:
    """Raises InputError if settings do not suit a space, or the floor is too much for a number of its strata.

    `reach` is for columns of the space, `most` for knobs and values in their range.
    """
    floor = settings.least_share(strata)
    if floor * strata > 1 + 1e-9:
        raise InputError(
            f"guard: floor {floor:g} x {strata} {space.words.path} is more than 1; choose at most {1 / strata:.3g}"
        )
    columns = [column.name for column in space.columns]
    if unknown := [name for name in settings.reach if name not in columns]:
        raise InputError(f"guard: reach.{unknown[0]:.60} is unknown; choose from {', '.join(columns)}")
    knobs = {knob.name: knob for knob in space.knobs}
    for name, most in settings.most.items():
        if name not in knobs:
            raise InputError(f"guard: most.{name:.60} is unknown; choose from {', '.join(knobs) or 'none'}")
        low, high = knobs[name].low, knobs[name].high
        if not low <= most <= high:
            raise InputError(f"guard: most.{name} is {most:g}; choose {low:g} to {high:g}")


def check_changes(delta: Delta, space: DesignSpace) -> None:
    """Raises InputError if a delta has an unknown column, or a change that is not finite."""
    names = [*(column.name for column in space.columns), *(knob.top for knob in space.knobs if knob.top)]
    for stratum, edit in delta.edits.items():
        if not isinstance(edit, Edit):
            raise InputError(f"edits.{stratum}: {edit!r:.60} is not an Edit; give an Edit")
        if not isinstance(edit.changes, dict) or not isinstance(edit.reason, str):
            raise InputError(f"edits.{stratum}: {edit!r:.60} lacks a table of changes or a text as reason; give both")
        for name, change in edit.changes.items():
            if name not in names:
                raise InputError(f"edits.{stratum}.{name!s:.60} is unknown; choose from {', '.join(names)}")
            if not is_finite(change):
                raise InputError(f"edits.{stratum}.{name}: {change!s:.60} is not finite; give a number")


def is_of_space(delta: Delta, space: DesignSpace) -> bool:
    """Return True if strata and columns of a delta are known and its changes finite, so that a file can hold it."""
    try:
        check_changes(delta, space)
    except InputError:
        return False
    return all(map(space.has_stratum, delta.edits))


def _project_rows(
    design: Design,
    proposed: Mapping[Stratum, DesignRow],
    space: DesignSpace,
    settings: GuardSettings,
    held: Container[Stratum],
) -> dict[Stratum, DesignRow]:
    """The rows nearest to `proposed` that are legal and within reach of `design`."""
    share = space.share.name
    current, raw = (np.array([row[share] for row in rows.values()], float) for rows in (design.strata, proposed))
    floor = settings.least_share(len(current))
    holds = np.array([stratum in held for stratum in design.strata])
    if holds.any():
        current, raw = _hold_shares(current, holds, floor), np.where(holds, np.minimum(raw, floor), raw)
        if not (raw > floor).any():  # all was for held strata, and equal shares would be more than the floor for them
            raw = _hold_shares(raw, holds, floor)
    shares = _project_shares(current, raw, floor, settings.reach_of(space.share))
    rows: dict[Stratum, DesignRow] = {}
    for part, (stratum, row) in zip(shares.tolist(), design.strata.items(), strict=True):
        rows[stratum] = {share: part}
        for knob in space.knobs:
            low, high = space.limits(stratum, knob)
            if knob.trait and low == high and low in (0, 1):
                low, high = knob.low, knob.high  # whether a stratum may have a trait is a question of what can be drawn
            high = max(low, min(high, settings.most.get(knob.name, high)))
            reach = settings.reach_of(knob)
            if knob.whole:
                high, reach = math.floor(high), float(max(1, math.floor(reach))) if reach else 0.0
            ends = []
            for now, end in zip(find_ends(row, knob), find_ends(proposed[stratum], knob), strict=True):
                # Clipped twice, range first: a current value outside the range, as after `most` was lowered, comes
                # back by steps.
                goal = math.floor(end + 0.5) if knob.whole else end
                ends.append(float(np.clip(np.clip(goal, low, high), now - reach, now + reach)))
            rows[stratum] |= make_window(knob, *ends)
    return rows


def _hold_shares(now: np.ndarray, held: np.ndarray, floor: float) -> np.ndarray:
    """The shares, with the `held` ones, bool [m], at most at the floor; others get the rest in proportion."""
    # The sum stays 1: what the held strata lose goes to the others, in proportion to what they have.
    found = np.where(held, np.minimum(now, floor), now)
    others = np.where(held, 0.0, now)
    parts = others / others.sum() if others.any() else ~held / max(1, (~held).sum())
    return found + (1 - found.sum()) * parts


def _project_shares(now: np.ndarray, raw: np.ndarray, floor: float, reach: float) -> np.ndarray:
    """The legal shares nearest to `raw` within reach of `now`, all float [m]."""
    # Two moves along straight lines between points whose shares sum to 1: so do all shares on the way. A design below
    # the floor is brought to it first, and both moves together stay within reach of where it was.
    legal = _move_toward(now, now, _raise_to_floor(now, floor), reach)
    goal = _raise_to_floor(np.clip(raw, 0, 1), floor)
    return np.clip(_move_toward(now, legal, goal, reach), 0, 1)


def _raise_to_floor(shares: np.ndarray, floor: float) -> np.ndarray:
    """The shares, float [m], at or above the floor; their excess keeps its proportions."""
    # Above the floor the proportions stay; clipping each share would favour whichever is clipped last.
    excess = np.maximum(shares - floor, 0)
    parts = excess / excess.sum() if excess.any() else np.full(len(shares), 1 / len(shares))
    return floor + max(0.0, 1 - floor * len(shares)) * parts


def _move_toward(origin: np.ndarray, start: np.ndarray, goal: np.ndarray, reach: float) -> np.ndarray:
    """The point furthest from `start` toward `goal` that is within `reach` of `origin` in every component."""
    # Every component moves by the same part of its way, so the one with least room decides for all.
    way = goal - start
    moving = np.abs(way) > 1e-12
    # `start` may be some way from `origin` already, so the room is what is left of the reach in the direction of the
    # move.
    room = reach - (np.sign(way) * (start - origin))[moving]
    part = np.min(room / np.abs(way[moving]), initial=1.0)
    return start + max(0.0, part) * way


def _keep_drawable(
    design: Design, applied: Mapping[Stratum, DesignRow], bounds: Bounds
) -> tuple[dict[Stratum, DesignRow] | None, list[str]]:
    """The rows, with the old values of rows that cannot be drawn, and a line for each stratum that has such values.

    None if not even these help, and the line of that stratum.
    """
    rows: dict[Stratum, DesignRow] = {}
    missing = []
    knobs = bounds.space.knobs
    for stratum, new in applied.items():
        ways = _ways_back(design.strata[stratum], new, knobs)
        legal = next((row for row in ways if can_draw_row(stratum, row, bounds, design.given)), None)
        line = _describe_undrawable(stratum, new, bounds.space)
        if legal is None:
            return None, [f"{line}; change {' or '.join(knob.name for knob in knobs)}"]
        if legal != new:
            missing.append(line)
        rows[stratum] = legal
    return rows, missing


def _ways_back(old: DesignRow, new: DesignRow, knobs: Sequence[Knob]) -> Iterator[DesignRow]:
    """`new`, and `new` with the old values of some knobs that changed: few before many, the last ones first."""
    # The last knobs go back first: spaces list levels before traits, and a level says more of how hard problems are.
    changed = [knob for knob in reversed(knobs) if find_ends(new, knob) != find_ends(old, knob)]
    # Fewest first, so that as much of the proposal as possible survives; all old values last, which drew this round's
    # problems.
    some = (way for count in range(len(changed)) for way in itertools.combinations(changed, count))
    for way in itertools.chain(itertools.islice(some, MOST_WAYS), [changed]):
        row = new
        for knob in way:
            row = replace_window(row, knob, *find_ends(old, knob))
        yield row


def can_draw_row(stratum: Stratum, row: DesignRow, bounds: Bounds, given: DesignRow | None = None) -> bool:
    """Return True if all problems of a stratum can be drawn that a row asks for.

    Args:
        stratum, row: from a design.
        bounds: the environment.
        given: the givens of the design, if it has any.
    """
    space = bounds.space
    if not row[space.share.name]:
        return True
    # The whole mix of the row is asked about, both sides of each trait included: a share that cannot be drawn would
    # be missing later, in the middle of a stage.
    single = Design({stratum: {**row, space.share.name: 1.0}}, given=given or {})
    return all(space.allows(cell) and is_drawable(bounds, cell, single) for cell in space.cells(single))


def check_draws(design: Design, bounds: Bounds, where: str) -> None:
    """Raises InputError on a stratum whose problems cannot be drawn. where: the design's place, for the message."""
    for stratum, row in design.strata.items():
        if not can_draw_row(stratum, row, bounds, design.given):
            raise InputError(f"{where}: {_describe_undrawable(stratum, row, bounds.space)}; change its knobs")


def _describe_undrawable(stratum: Stratum, row: DesignRow, space: DesignSpace) -> str:
    asked = " and ".join(f"{knob.name} {write_ends(row, knob, '.3g')}" for knob in space.knobs)
    return f"{space.words.path}.{stratum}: no {space.words.problems} with {asked} can be drawn"


def is_drawable(bounds: Bounds, cell: Cell, design: Design) -> bool:
    """Calls `drawable` on a cell, with the design's givens and named knobs.

    Raises InputError if it fails or gives no bool.
    """
    space = bounds.space
    named = space.name_cell(space.complete_cell(cell, design) if design.given else cell)

    def where() -> str:
        return f"{type(bounds).__name__}: cell {named}: drawable"

    said = run_short_call(where, bounds.drawable, named)
    if not isinstance(said, bool):
        raise FailedCallError(f"{where()} gave {show(said)}; return a bool, such as bool(...)")
    return said


def _list_differences(
    proposed: Mapping[Stratum, DesignRow], applied: Mapping[Stratum, DesignRow], space: DesignSpace
) -> list[str]:
    return [
        f"{space.words.path}.{stratum}.{name}: proposed {old:.3g}, applied {new:.3g}"
        for stratum, row in proposed.items()
        for column in space.columns
        for name, old, new in _pair_ends(row, applied[stratum], column)
        if abs(old - new) > SAME_VALUE
    ]


def _pair_ends(proposed: DesignRow, applied: DesignRow, column: Knob) -> Iterator[tuple[str, float, float]]:
    """The name of each end of a column and both values; the upper end only if it has a window in one of the rows."""
    low, high = zip(find_ends(proposed, column), find_ends(applied, column), strict=True)
    yield (column.name, *low)
    if column.top in proposed or column.top in applied:
        yield (column.top, *high)
