"""Teachers that follow the difficulty model: Thompson-sampled, and in steps that a model of tokens can be taught."""

from dataclasses import dataclass

import numpy as np

from lakewright.core_jax.support import Natural, Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import join_edits, weigh_cells
from lakewright.engineer.design import Delta, Design, DesignRow
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import Objective, value_of
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.token_form import rate_worths
from lakewright.engineer.evidence.vocabulary import FRONTIER, TOO_EASY, TOO_HARD
from lakewright.engineer.plugins import Power
from lakewright.engineer.proposal import Proposal, Stateful, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers.controls import size_of
from lakewright.engineer.teachers.rules import RuleTeacher, make_step_edit, strides_toward


@dataclass
class DifficultyTeacher(Stateful):
    """q_c ~ h_c l_c^power r_c / s_c^length over the held-out cells c; h_c is the share of the held-out problems,
    l_c = p_c (1 - p_c), and s_c the size of the stratum: its number, or its rank from 1.

    If the model's objective is the regret, l_c = 1 - p_c. r_c is the largest p of the cells that differ
    from c in their traits alone, to the power of the model's reach.

    With `group` G, l_c = 1 - p_c^G - (1 - p_c)^G instead: the chance that G answers do not all earn the same. Where
    advantages are divided by their standard deviation, every such group pulls alike.

    With power 1 that is the maximum of sum_c h_c l_c log q_c: data on a cell have diminishing returns. With length 1 it
    is so for a budget of tokens because answers grow with the size: each problem of c costs s_c of it. p is drawn from
    the posterior of the model once a proposal (Thompson 1933), so that cells of which little is known are explored.
    `mix` of the data are spread as the held-out problems are. A design draws one value of a level a stratum: the mean
    of q's.
    """

    reads_outcomes = True

    power: Power = 1.0
    mix: Share = 0.1
    group: Natural = 0
    length: Power = 0.0

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of q. Without rollouts, no edits."""
        known = evidence.forecast
        held_out = [part for part in known.held_out if part.cell.stratum in design.strata] if known else []
        if known is None or not known.model.groups or not held_out:
            return propose_nothing()
        cells, shares = [part.cell for part in held_out], np.array([part.share for part in held_out])
        complete = [space.complete_cell(cell, design) for cell in cells]
        # A single draw is Thompson sampling: a cell is chosen as often as it may be the best.
        drawn = known.model.sample(complete, space, numpy_rng(key), 1)
        sizes = np.array([size_of(cell.stratum, space) for cell in cells])
        value = self._estimate_value(drawn.success[0], known.model.objective) ** self.power
        weights = shares * value * drawn.best[0] ** known.model.reach / sizes**self.length
        weights = (1 - self.mix) * weights / weights.sum() + self.mix * shares / shares.sum()
        rows = weigh_cells(dict(zip(cells, weights.tolist(), strict=True)), design, space)
        alike = len({part.share for part in held_out}) == 1  # as where none are given
        weighed = "all weighed alike" if alike else f"weighed by the held-out {space.words.problems}"
        return propose_rows(design, rows, f"the cells of the largest expected learnability, {weighed}", space)

    def _estimate_value(self, success: np.ndarray, objective: Objective) -> np.ndarray:
        if self.group:
            return np.clip(1 - success**self.group - (1 - success) ** self.group, 1e-6, 1)
        return value_of(success, objective)


@dataclass
class ForecastTeacher(RuleTeacher):
    """q_c ~ v_c^power r_c over the cells c whose forecast is stated in tokens (`DesignSpace.list_stated_cells`).

    v_c is p (1 - p), or 1 - p if the model's objective is the regret, p being the forecast's P(valid); r_c is the
    largest p of the cells that differ from c in their traits alone, to the power of the model's reach. So it is the
    teacher `difficulty` without chance and mix, as if just these cells were held out. Share and knobs of a stratum go
    toward q's, by two steps at most.
    """

    power: Power = 1.0

    def make_delta(self, evidence: Evidence, design: Design, space: DesignSpace) -> Delta:
        """See `RuleTeacher.make_delta`.

        No edit if the forecast lacks a stratum or rests on nothing, or if no problem is worth anything.
        """
        known = evidence.forecast
        success = _map_told(known, design, space) if known else {}
        if known is None or not known.model.groups or {cell.stratum for cell in success} != design.strata.keys():
            return Delta({})
        objective, reach = known.model.objective, known.model.reach
        best, weights = {}, {}
        for cell, p in success.items():
            best[cell] = max(p, *(success.get(other, 0.0) for other in space.siblings(cell)), 0.0)
            weights[cell] = value_of(p, objective) ** self.power * best[cell] ** reach
        # All solved or nothing solvable: no edit is better than equal weights, which would undo what was learned of
        # the shares.
        if not any(weights.values()):
            return Delta({})
        edits = {}
        for stratum, goal in weigh_cells(weights, design, space).items():
            row = design.strata[stratum]
            token = _choose_reason(row, goal, max(p for at, p in best.items() if at.stratum == stratum), space)
            edits[stratum] = make_step_edit(stratum, row, strides_toward(row, goal, space), token, space)
        return join_edits(edits)


@dataclass
class WorthTeacher(RuleTeacher):
    """q_c ~ w_c^power over the cells c whose worth w_c, the gain by training on a problem, is stated in tokens.

    Share and traits of a stratum go toward q, its levels toward its best cell, by two steps at most. So it is the
    teacher `gain` in steps, for lessons.
    """

    power: Power = 1.0

    def make_delta(self, evidence: Evidence, design: Design, space: DesignSpace) -> Delta:
        """See `RuleTeacher.make_delta`. No edit if the forecast lacks a stratum, or the worth of its cells."""
        known = evidence.forecast
        success, worth = (_map_told(known, design, space), rate_worths(known, space)) if known else ({}, {})
        weights = {cell: worth[cell] ** self.power for cell in success if cell in worth}
        if {cell.stratum for cell in weights} != design.strata.keys() or not any(weights.values()):
            return Delta({})
        edits = {}
        for stratum, goal in weigh_cells(weights, design, space).items():
            row, mine = design.strata[stratum], [cell for cell in weights if cell.stratum == stratum]
            best = max(mine, key=lambda cell: weights[cell])
            goal = goal | {space.knobs[place].name: best.values[place] for place in space.levels}
            token = _choose_reason(row, goal, max(success[cell] for cell in mine), space)
            edits[stratum] = make_step_edit(stratum, row, strides_toward(row, goal, space), token, space)
        return join_edits(edits)


def _map_told(known: Forecast, design: Design, space: DesignSpace) -> dict[Cell, float]:
    """P(valid) of the cells that the tokens of the evidence tell."""
    p = {found.cell: found.p for found in known.grid}
    told = {cell for stratum in design.strata for cell in space.list_stated_cells(stratum, p)}
    return {cell: success for cell, success in p.items() if cell in told}


def _choose_reason(row: DesignRow, goal: DesignRow, best: float, space: DesignSpace) -> str:
    """A stratum that loses data is too hard if even its easier problems mostly fail, and else too easy."""
    if goal[space.share.name] >= row[space.share.name]:
        return FRONTIER
    return TOO_HARD if best < 0.5 else TOO_EASY
