"""The teacher that looks for the largest expected gain on the held-out problems."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell, Knob, Stratum, Value
from lakewright.engineer.design import Design, DesignRow
from lakewright.engineer.difficulty.forecasting import Forecast, find_costs
from lakewright.engineer.difficulty.gains import Learners
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.plugins import Power
from lakewright.engineer.proposal import Proposal, Stateful, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers.controls import size_of
from lakewright.engineer.windows import MOST_WINDOWS, list_windowed, make_window, replace_window

MOST_VALUES = 16  # of a whole level that are looked at; of more, or of one that is not whole, POINTS
POINTS = 9
MOST_CELLS = 128  # of a stratum; with more, one level at a time is varied
MOST_LEARNERS = 1024  # each takes memory and time for every cell
PARTS = 16  # of a round: after each part of the training, the best cell is chosen again
REASON = "the largest gain expected"
NOTHING_VALID = "no answer was valid so far: the easiest levels"
TRACE = 0.05  # the least share of the problems of a stratum that have a trait, and that lack it
USUAL = 2.0  # what a round trains, in units of signal by stratum, before a round was seen
LevelValues = tuple[Value, ...]
"""The levels of a cell."""
GainByTraits = dict[tuple[bool, ...], float]
"""The gain of a problem by its traits."""


@dataclass
class GainTeacher(Stateful):
    """Plans the next round on learners drawn from the posterior, each trained part by part on its best cell.

    The share of a stratum is the mean share that its cells have in these plans. So a stratum gets problems as long as
    it may be the best, and fewer as more of them add less. (Thompson 1933, for a round of many problems.) Its levels
    gain most.

    A cell is worth the prospect of its kind (`Learners.estimate_prospects`), as many rounds ahead as there were so far,
    but at most `horizon`, and no more than are left; with 0, the gain of its next problem. Problems with a trait and
    without it are shared in proportion to their gains to the power `mixing`, because learning one kind alone may
    unlearn the other; with 0, only the better kind is drawn.

    The gain is per token if the trainer tells the lengths of answers, else per problem. With `length` it is divided by
    size^length, so 1 is per token if answers grow with the size of a stratum, as boards do: its number, or its rank.

    While no answer at all was valid, nothing tells problems apart except which levels are harder. So levels become the
    easiest, and shares stay.

    With `near` below 1 a level is drawn from a window: the values about the best one that gain at least `near` as much.
    """

    reads_outcomes = True
    needs_rates = True

    per: Literal["token", "problem"] = "token"
    length: Power = 0.0
    near: Share = 1.0
    learners: Annotated[int, Meta(ge=1, le=MOST_LEARNERS)] = 32
    horizon: Power = 8.0
    mixing: Power = 3.0

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of the plan. Without answers, no edits."""
        known = evidence.forecast
        if known is None or not known.model.groups:
            return propose_nothing()
        if _lacks_signal(evidence, known):
            return propose_rows(design, _make_easiest(design, space), NOTHING_VALID, space)
        learners = Learners(known, design, space, numpy_rng(key), self.learners)
        cells = [
            cell for stratum in space.sort_strata(design.strata) for cell in list_candidates(stratum, design, space)
        ]
        costs = self._list_costs(known, [cell.stratum for cell in cells], space)
        kinds = learners.group_cells(cells)
        problems = evidence.problems or USUAL * len(design.strata) * learners.unit
        ahead = min(self.horizon, count_rounds_ahead(evidence)) * problems

        def estimate() -> np.ndarray:
            worth = learners.estimate_prospects(kinds, ahead) if ahead else learners.estimate_gains(cells)
            return worth / costs

        gains = now = estimate()
        chosen = np.zeros(len(cells))
        for part in range(PARTS):
            best = now.argmax(axis=1)
            np.add.at(chosen, best, 1 / (PARTS * self.learners))
            # This part makes the same cells worth less, so the next one is planned on the trained learners.
            if part < PARTS - 1:
                learners.train([cells[place] for place in best], problems / PARTS)
                now = estimate()
        rows = _make_rows(cells, chosen, gains.mean(axis=0), self.near, self.mixing, space)
        return propose_rows(design, {stratum: rows[stratum] for stratum in design.strata}, REASON, space)

    def _list_costs(self, known: Forecast, strata: list[Stratum], space: DesignSpace) -> np.ndarray:
        """The cost of a problem of each stratum, float [N]."""
        if self.length:
            return np.array([float(size_of(stratum, space)) for stratum in strata]) ** self.length
        return find_costs(known.tokens or {} if self.per == "token" else {}, strata)


def count_rounds_ahead(evidence: Evidence) -> float:
    """As many rounds as there were so far, or as are left if that is less and their number is known.

    How fast a policy learns is known from the rounds so far. If nobody says when training ends, it is as likely to end
    within that time as to go on for longer.
    """
    seen = evidence.round or 0
    # Beyond the last round that was announced there is still the stage that this design is for.
    return seen if evidence.rounds is None else min(seen, max(1, evidence.rounds - seen))


def _lacks_signal(evidence: Evidence, known: Forecast) -> bool:
    """Return True if no answer was valid so far, in training or to held-out problems, and no reward was graded."""
    abilities = known.model.abilities
    graded = bool(abilities and abilities.graded and any(abilities.graded))
    return not (known.success or graded or any(tally.valid for tally in evidence.outcomes.values()))


def _make_easiest(design: Design, space: DesignSpace) -> dict[Stratum, DesignRow]:
    """The rows of a design with the easiest levels and traits; knobs of no direction stay."""
    rows = {}
    for stratum, row in design.strata.items():
        for knob in space.knobs:
            if knob.harder:
                least, most = (TRACE, 1 - TRACE) if knob.trait else space.limits(stratum, knob)
                easiest = least if knob.harder > 0 else most
                row = replace_window(row, knob, easiest, easiest)
        rows[stratum] = row
    return rows


def _make_rows(
    cells: list[Cell], chosen: np.ndarray, gains: np.ndarray, near: float, mixing: float, space: DesignSpace
) -> dict[Stratum, DesignRow]:
    """The rows of a plan: how much each cell was chosen, and what a problem of it gains at the start."""
    places: dict[Stratum, list[int]] = {}
    for place, cell in enumerate(cells):
        places.setdefault(cell.stratum, []).append(place)
    rows: dict[Stratum, DesignRow] = {}
    for stratum, mine in places.items():
        kinds: dict[LevelValues, GainByTraits] = {}
        for place in mine:
            levels, traits = _split_values(cells[place].values, space)
            kinds.setdefault(levels, {})[traits] = float(gains[place])
        worth = {levels: _combine(by_traits.values(), mixing) for levels, by_traits in kinds.items()}
        best = max(worth, key=lambda levels: worth[levels])
        row: DesignRow = {space.share.name: float(chosen[mine].sum())}
        for number, place in enumerate(space.traits):
            row[space.knobs[place].name] = _share_trait(number, kinds[best], mixing)
        for number, knob in enumerate(knob for knob in space.knobs if not knob.trait):
            low, high = space.limits(stratum, knob)
            # More windows would have more combinations than a design may draw.
            single = not knob.top or len(list_windowed(row, space.knobs)) == MOST_WINDOWS
            ends = _find_window(number, best, worth, 1 if single else near)
            row |= make_window(knob, *(min(high, max(low, float(end))) for end in ends))
        rows[stratum] = row
    return rows


def _split_values(values: tuple[Value, ...], space: DesignSpace) -> tuple[LevelValues, tuple[bool, ...]]:
    """The levels and the traits of a cell."""
    levels = tuple(value for place, value in enumerate(values) if place not in space.traits)
    return levels, tuple(bool(values[place]) for place in space.traits)


def _combine(gains: Iterable[float], mixing: float) -> float:
    """The gain of a problem if kinds are shared by their gains to the power `mixing`; 0: all are of the best kind.

    The less more of a kind adds, the more there is of it: sum_k g_k q_k^(1 - 1/mixing) is largest for shares q_k in
    proportion to g_k^mixing, and then is this. (A sum of isoelastic utilities: Atkinson 1970.)
    """
    return float(sum(gain**mixing for gain in gains) ** (1 / mixing)) if mixing else max(gains)


def _share_trait(number: int, kinds: GainByTraits, mixing: float) -> float:
    """The share of problems with a trait."""
    most = max(kinds.values())
    weights = {traits: gain**mixing if mixing else float(gain == most) for traits, gain in kinds.items()}
    total = sum(weights.values())
    having = sum(weight for traits, weight in weights.items() if traits[number])
    return min(1 - TRACE, max(TRACE, having / total if total else 0.5))


def _find_window(number: int, best: LevelValues, worth: dict[LevelValues, float], near: float) -> tuple[Value, Value]:
    """The ends of the values about the best one of a level that gain at least `near` as much."""
    middle = best[number]
    if near >= 1:
        return middle, middle
    line = {levels[number]: gain for levels, gain in worth.items() if _is_beside(levels, best, number)}
    ways = sorted((value for value in line if value < middle), reverse=True), sorted(v for v in line if v > middle)
    low, high = ([*itertools.takewhile(lambda value: line[value] >= near * line[middle], way)] for way in ways)
    return low[-1] if low else middle, high[-1] if high else middle


def _is_beside(levels: LevelValues, best: LevelValues, number: int) -> bool:
    """Return True if levels differ at most in one."""
    return levels[:number] == best[:number] and levels[number + 1 :] == best[number + 1 :]


def list_candidates(stratum: Stratum, design: Design, space: DesignSpace) -> list[Cell]:
    """The cells of a stratum that a design may draw: its levels in all their range, with and without traits."""
    row = design.strata[stratum]
    usual = space.list_usual(row)
    ways = [_list_values(stratum, knob, value, space) for knob, value in zip(space.knobs, usual, strict=True)]
    if np.prod([len(way) for way in ways]) <= MOST_CELLS:
        return [Cell(stratum, values) for values in itertools.product(*ways)]
    # One level and one trait at a time, so that all levels are compared by the same kinds of problems.
    rows = [usual]
    for traits in (False, True):
        rows += [
            (*row[:place], value, *row[place + 1 :])
            for row in list(rows)
            for place, way in enumerate(ways)
            for value in way
            if space.knobs[place].trait == traits and value != row[place]
        ]
    return [Cell(stratum, row) for row in rows]


def _list_values(stratum: Stratum, knob: Knob, now: float, space: DesignSpace) -> list[Value]:
    if knob.trait:
        return space.list_trait_values(stratum, knob)
    low, high = space.limits(stratum, knob)
    if knob.whole and high - low < MOST_VALUES:
        return list(range(round(low), round(high) + 1))
    points = (knob.round_value(low + place * (high - low) / (POINTS - 1)) for place in range(POINTS))
    return sorted({*points, now})
