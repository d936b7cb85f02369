"""The rule that follows the forecast in steps: what a model of tokens can be taught to do with it."""

from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.delta import weigh_cells
from lakewright.engineer.design import Delta, Design, Edit, Row
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import value_of
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.vocabulary import FRONTIER, TOO_EASY, TOO_HARD, vocabulary_of
from lakewright.engineer.plugins import Power
from lakewright.engineer.proposal import Proposal, Stateful, propose_delta
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers.rules import make_step_edit, strides_toward


class ForecastTeacher(Stateful):
    """q_c ~ v_c^power r_c over the cells c of which evidence in tokens tells the forecast (`DesignSpace.told_cells`).

    v_c is p (1 - p), or 1 - p where the model's objective is the regret, p being the forecast's P(valid); r_c is the
    largest p of the cells that differ from c in their traits alone, to the power of the model's reach. So it is the
    teacher `difficulty` without chance and mix, as if just these cells were held out. Share and knobs of a stratum go
    toward those of q, by two steps at most.
    """

    def __init__(self, power: Power = 1.0) -> None:
        self.power = power

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The delta of the rule. Deterministic."""
        return propose_delta(self.make_delta(evidence, design, space))

    def make_delta(self, evidence: Evidence, design: Design, space: DesignSpace) -> Delta:
        """An edit for each stratum that is to change.

        None where the forecast lacks a stratum or rests on nothing, or where no problem is worth anything.
        """
        known = evidence.forecast
        success = _list_told(known, design, space) if known else {}
        if known is None or not known.model.groups or {cell.stratum for cell in success} != design.strata.keys():
            return Delta({})
        best = {
            cell: max(p, *(success.get(other, 0.0) for other in space.siblings(cell)), 0.0)
            for cell, p in success.items()
        }
        weights = {
            cell: self._estimate_value(known, p) * best[cell] ** known.model.reach for cell, p in success.items()
        }
        if not any(weights.values()):
            return Delta({})
        edits: dict[Stratum, Edit] = {}
        for stratum, goal in weigh_cells(weights, design, space).items():
            row = design.strata[stratum]
            reason = _choose_reason(row, goal, max(p for at, p in best.items() if at.stratum == stratum), space)
            sentence = vocabulary_of(space).reasons[reason]
            if edit := make_step_edit(stratum, row, strides_toward(row, goal, space), sentence, space):
                edits[stratum] = edit
        return Delta(edits)

    def _estimate_value(self, known: Forecast, success: float) -> float:
        return value_of(success, known.model.objective) ** self.power


def _list_told(known: Forecast, design: Design, space: DesignSpace) -> dict[Cell, float]:
    """P(valid) of the cells that the tokens of the evidence tell."""
    p = {found.cell: found.p for found in known.grid}
    told = {cell for stratum in design.strata for cell in space.told_cells(stratum, p)}
    return {cell: success for cell, success in p.items() if cell in told}


def _choose_reason(row: Row, goal: Row, best: float, space: DesignSpace) -> str:
    """A stratum that loses data is too hard where even its easier problems mostly fail, and else too easy."""
    if goal[space.share.name] >= row[space.share.name]:
        return FRONTIER
    return TOO_HARD if best < 0.5 else TOO_EASY
