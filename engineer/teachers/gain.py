"""The teacher that looks for the largest expected gain on the held-out problems."""

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lakewright.core_jax.support import Count, Share
from lakewright.engineer.cells import Cell, Knob, Stratum, Value
from lakewright.engineer.design import Design, Row
from lakewright.engineer.difficulty.forecasting import Forecast, find_costs
from lakewright.engineer.difficulty.gains import Learners
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.plugins import Power
from lakewright.engineer.proposal import Proposal, Stateful, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers.controls import size_of
from lakewright.engineer.windows import MOST_WINDOWS, list_windowed, make_window

MOST_VALUES = 16  # of a whole level that are looked at; of more, or of one that is not whole, POINTS
POINTS = 9
MOST_CELLS = 128  # of a stratum; with more, one level at a time is varied
PARTS = 16  # of a round: after each part of the training, the best cell is chosen again
TRACE = 0.05  # the least share of the problems of a stratum that have a trait, and that lack it
USUAL = 2.0  # what a round trains, in units of signal by stratum, before a round was seen


@dataclass
class GainTeacher(Stateful):
    """Plans the next round on learners drawn from the posterior, each trained part by part on its best cell.

    The share of a stratum is the mean share that its cells have in these plans. So a stratum gets problems as long as
    it may be the best, and fewer as more of them add less. Its levels have the largest expected gain, and
    its traits as often as that cell has them. (Thompson 1933, for a round of many problems.)

    The gain is per token if the trainer tells the lengths of answers, else per problem. With `length` it is divided by
    size^length, so 1 is per token if answers grow with the size of a stratum, as boards do: its number, or its rank.

    With `near` below 1 a level is drawn from a window: the values about the best one that gain at least `near` as much.
    """

    per: Literal["token", "problem"] = "token"
    length: Power = 0.0
    near: Share = 1.0
    learners: Count = 32

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of the plan. Without answers, no edits."""
        known = evidence.forecast
        if known is None or not known.model.groups:
            return propose_nothing()
        learners = Learners(known, design, space, numpy_rng(key), self.learners)
        cells = [
            cell for stratum in space.sort_strata(design.strata) for cell in list_candidates(stratum, design, space)
        ]
        costs = self._list_costs(known, [cell.stratum for cell in cells], space)
        gains = learners.estimate_gains(cells) / costs
        problems = (evidence.problems or USUAL * len(design.strata) * learners.unit) / PARTS
        chosen = np.zeros(len(cells))
        now = gains
        for part in range(PARTS):
            best = now.argmax(axis=1)
            np.add.at(chosen, best, 1 / (PARTS * self.learners))
            learners.train([cells[place] for place in best], problems)
            if part < PARTS - 1:
                now = learners.estimate_gains(cells) / costs
        rows = _make_rows(cells, chosen, gains.mean(axis=0), self.near, space)
        reason = f"the largest gain expected on the held-out {space.words.problems}"
        return propose_rows(design, {stratum: rows[stratum] for stratum in design.strata}, reason, space)

    def _list_costs(self, known: Forecast, strata: list[Stratum], space: DesignSpace) -> np.ndarray:
        """The cost of a problem of each stratum, float [N]."""
        if self.length:
            return np.array([float(size_of(stratum, space)) for stratum in strata]) ** self.length
        return find_costs(known.tokens or {} if self.per == "token" else {}, strata)


def _make_rows(
    cells: list[Cell], chosen: np.ndarray, gains: np.ndarray, near: float, space: DesignSpace
) -> dict[Stratum, Row]:
    """The rows of a plan: how much each cell was chosen, and what a problem of it gains at the start."""
    places: dict[Stratum, list[int]] = {}
    for place, cell in enumerate(cells):
        places.setdefault(cell.stratum, []).append(place)
    rows: dict[Stratum, Row] = {}
    for stratum, mine in places.items():
        best = cells[max(mine, key=lambda place: (gains[place], -place))]
        row: Row = {space.share.name: float(chosen[mine].sum())}
        for number, knob in enumerate(space.knobs):
            low, high = (TRACE, 1 - TRACE) if knob.trait else space.limits(stratum, knob)
            single = not knob.top or len(list_windowed(row, space.knobs)) == MOST_WINDOWS
            mean = {cells[place]: float(gains[place]) for place in mine}
            ends = _find_window(number, best, mean, 1 if single else near)
            row |= make_window(knob, *(min(high, max(low, float(end))) for end in ends))
        rows[stratum] = row
    return rows


def _find_window(number: int, best: Cell, gains: dict[Cell, float], near: float) -> tuple[Value, Value]:
    """The ends of the values about the best cell's of a knob that gain at least `near` as much.

    Args:
        number: which knob.
        best: the cell.
        gains: of the cells of its stratum.
        near: 1 for the value of the best cell alone.
    """
    middle = best.values[number]
    if near >= 1:
        return middle, middle
    line = {cell.values[number]: gain for cell, gain in gains.items() if _is_beside(cell, best, number)}
    ways = sorted((value for value in line if value < middle), reverse=True), sorted(v for v in line if v > middle)
    low, high = ([*itertools.takewhile(lambda value: line[value] >= near * line[middle], way)] for way in ways)
    return low[-1] if low else middle, high[-1] if high else middle


def _is_beside(cell: Cell, best: Cell, number: int) -> bool:
    """Return True if the cells of a stratum differ at most in one knob."""
    return cell.values[:number] == best.values[:number] and cell.values[number + 1 :] == best.values[number + 1 :]


def list_candidates(stratum: Stratum, design: Design, space: DesignSpace) -> list[Cell]:
    """The cells of a stratum that a design may draw: its levels in all their range, with and without traits."""
    row = design.strata[stratum]
    usual = space.list_usual(row)
    ways = [_list_values(stratum, knob, value, space) for knob, value in zip(space.knobs, usual, strict=True)]
    if np.prod([len(way) for way in ways]) <= MOST_CELLS:
        return [Cell(stratum, values) for values in itertools.product(*ways)]
    found = [Cell(stratum, usual)]
    for place, way in enumerate(ways):
        found += [Cell(stratum, (*usual[:place], value, *usual[place + 1 :])) for value in way if value != usual[place]]
    return found


def _list_values(stratum: Stratum, knob: Knob, now: float, space: DesignSpace) -> list[Value]:
    low, high = space.limits(stratum, knob)
    if knob.trait:
        return [value for value, possible in ((False, low < 1), (True, high > 0)) if possible]
    if knob.whole and high - low < MOST_VALUES:
        return list(range(round(low), round(high) + 1))
    points = (knob.round_value(low + place * (high - low) / (POINTS - 1)) for place in range(POINTS))
    return sorted({*points, now})
