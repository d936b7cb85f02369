"""The rule that shares out data in proportion to what a stratum's problems are worth to the training."""

from collections.abc import Mapping
from typing import TypeVar

from lakewright.engineer.cells import Knob, Stratum
from lakewright.engineer.design import Delta, Design, Edit
from lakewright.engineer.difficulty.model import Objective, value_of
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.vocabulary import vocabulary_of
from lakewright.engineer.plugins import Power
from lakewright.engineer.proposal import Proposal, Stateful, propose_delta
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally
from lakewright.engineer.teachers.rules import RulesTeacher, list_outcomes, make_step_edit, strides_toward

Kind = TypeVar("Kind", bool, int | str)


class ProportionalTeacher(Stateful):
    """Data d_s ~ w_s^power over the strata s, as Prioritized Level Replay does with levels (arXiv 2010.03934).

    With v the valid rate of a stratum, w = v (1 - v), or 1 - v where the objective is the regret. The problems of a
    stratum that have a trait and those that lack it share its data by the same formula, so a trait goes where it fails.
    Its share stays where one of the two rates is unknown. These columns move by two steps at most; levels move
    as the threshold rule moves them that seeks the same objective. A stratum without outcomes stays.
    """

    def __init__(self, objective: Objective = "learnability", power: Power = 1.0) -> None:
        self.objective: Objective = objective
        self.power = power
        self.rules = RulesTeacher.for_objective(objective)

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The delta of the rule. Deterministic."""
        return propose_delta(self.make_delta(evidence, design, space))

    def make_delta(self, evidence: Evidence, design: Design, space: DesignSpace) -> Delta:
        """An edit for each stratum of `design` that the evidence is about and that is to change."""
        seen = list_outcomes(evidence, design, space)
        data = sum(design.strata[stratum][space.share.name] for stratum in seen)
        edits: dict[Stratum, Edit] = {}
        for stratum, share in self._divide_data({one: tally.valid_rate for one, tally in seen.items()}).items():
            row, (strides, token) = design.strata[stratum], self.rules.choose_strides(seen[stratum], space)
            traits = [space.knobs[place] for place in space.traits]
            goal = {**row, space.share.name: data * share}
            goal |= {knob.name: self._trait_share(seen[stratum], knob, row[knob.name]) for knob in traits}
            levels = {space.knobs[place].name: strides.get(space.knobs[place].name, 0) for place in space.levels}
            reason = vocabulary_of(space).reasons[token]
            if edit := make_step_edit(stratum, row, strides_toward(row, goal, space) | levels, reason, space):
                edits[stratum] = edit
        return Delta(edits)

    def _trait_share(self, tally: Tally, knob: Knob, now: float) -> float:
        rates = _rates_by_trait(tally, knob)
        return self._divide_data(rates)[True] if len(rates) == 2 else now

    def _divide_data(self, rates: Mapping[Kind, float]) -> dict[Kind, float]:
        """The share of all data that each kind of problems gets, by its valid rate."""
        worth = {kind: value_of(rate, self.objective) ** self.power for kind, rate in rates.items()}
        total = sum(worth.values())
        return {kind: part / total if total else 1 / len(worth) for kind, part in worth.items()}


def _rates_by_trait(tally: Tally, knob: Knob) -> dict[bool, float]:
    """The valid rate of the problems that have a trait, and of those that lack it, where there are any."""
    having = tally.traits.get(knob.name, Tally(0, 0))
    counts = {
        False: (tally.problems - having.problems, tally.valid - having.valid),
        True: (having.problems, having.valid),
    }
    return {has: valid / problems for has, (problems, valid) in counts.items() if problems}
