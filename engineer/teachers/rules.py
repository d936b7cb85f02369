"""Rules on the outcomes: thresholds, and data in proportion to problems' worth; and edits in whole steps."""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Knob, Stratum
from lakewright.engineer.delta import join_edits, make_edit
from lakewright.engineer.design import Delta, Design, DesignRow, Edit
from lakewright.engineer.difficulty.model import Objective, value_of
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.vocabulary import FRONTIER, STRIDES, TOO_EASY, TOO_HARD, because_token, vocabulary_of
from lakewright.engineer.plugins import Power
from lakewright.engineer.proposal import Proposal, Stateful, propose_delta
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally, subtract_tally
from lakewright.engineer.windows import find_ends, find_middle

KnobKind = TypeVar("KnobKind", bool, int | str)


class RuleTeacher(Stateful, abc.ABC):
    """A teacher whose delta is a rule on the evidence."""

    reads_outcomes = True

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The delta of the rule. Deterministic."""
        return propose_delta(self.make_delta(evidence, design, space))

    @abc.abstractmethod
    def make_delta(self, evidence: Evidence, design: Design, space: DesignSpace) -> Delta:
        """An edit for each stratum of `design` that the evidence is about and that is to change."""


@dataclass
class RulesTeacher(RuleTeacher):
    """Per stratum, by the valid rate v (reasoning-gym's coaching rule, with the paper's advice on data):

    v > harder_above: harder, and a bit less data. v < easier_below: easier, and less data because it gives no signal.
    Between them, at the frontier: more data. Knobs move two steps if v is nearer to 1 (or 0) than to the threshold;
    knobs of unknown direction stay, and so does a stratum without outcomes.
    """

    easier_below: Share = 0.3
    harder_above: Share = 0.7

    @classmethod
    def for_objective(cls, objective: Objective) -> Self:
        """The rule whose frontier is where problems are worth most: for learnability, p (1 - p), around one half.

        The regret pays until about 0.6 (docs/lab/trials-and-gains.md), so there only a valid rate that is
        nearly zero is too low.
        """
        return cls() if objective == "learnability" else cls(easier_below=0.1, harder_above=0.4)

    def __post_init__(self) -> None:
        check_order("easier_below", self.easier_below, "harder_above", self.harder_above)

    def make_delta(self, evidence: Evidence, design: Design, space: DesignSpace) -> Delta:
        """See `RuleTeacher.make_delta`."""
        edits = {}
        for stratum, tally in map_outcomes(evidence, design, space).items():
            strides, token = self.choose_strides(tally, space)
            edits[stratum] = make_step_edit(stratum, design.strata[stratum], strides, token, space)
        return join_edits(edits)

    def choose_strides(self, tally: Tally, space: DesignSpace) -> tuple[dict[str, int], str]:
        """By how many steps each column of a stratum is to move, and the token of the reason."""
        valid, share = tally.valid_rate, space.share.name
        if valid > self.harder_above:
            stride = 2 if valid > (1 + self.harder_above) / 2 else 1
            return {share: -1, **{knob.name: stride * knob.harder for knob in space.knobs}}, TOO_EASY
        if valid < self.easier_below:
            stride = 2 if valid < self.easier_below / 2 else 1
            strides = {knob.name: -stride * knob.harder for knob in space.knobs}
            worst = max(space.failures, key=lambda name: tally.failures.get(name, 0))
            return {share: -1, **strides}, because_token(worst) if tally.failures.get(worst) else TOO_HARD
        return {share: 1}, FRONTIER


def check_order(less: str, low: float, more: str, high: float) -> None:
    """Raises InputError if the option `less`, which is `low`, is above the option `more`, which is `high`."""
    if low > high:
        raise InputError(f"teacher_options: {less} is {low:g}, more than {more} {high:g}; choose less")


def map_outcomes(evidence: Evidence, design: Design, space: DesignSpace) -> dict[Stratum, Tally]:
    """The outcomes of each stratum of `design`, by rank; a stratum without any problems is left out."""
    strata = (stratum for stratum in space.sort_strata(design.strata) if stratum in evidence.outcomes)
    return {stratum: evidence.outcomes[stratum] for stratum in strata if evidence.outcomes[stratum].problems}


def can_step(stratum: Stratum, row: DesignRow, column: Knob, stride: int, space: DesignSpace) -> bool:
    """Return True if `stride` steps leave a value of a stratum's row inside its range there, float noise aside.

    Args:
        stratum, row: the stratum, and its values.
        column, stride: the column that moves, and by how many steps.
        space: the design space.
    """
    # `reachable` and not `limits`: a step must also land on a value that the design can have.
    low, high = space.reachable(stratum, column)
    first, last = (end + stride * column.step for end in find_ends(row, column))
    return low - 1e-9 <= first and last <= high + 1e-9


def make_step_edit(
    stratum: Stratum, row: DesignRow, strides: Mapping[str, int], token: str, space: DesignSpace
) -> Edit:
    """The edit of a stratum by some steps a column, without those that do not fit.

    Args:
        stratum, row: the stratum, and its values.
        strides: steps by column.
        token: the reason's token.
        space: the design space.
    """
    changes = {
        column.name: strides[column.name] * column.step
        for column in space.columns
        if column.name in strides and can_step(stratum, row, column, strides[column.name], space)
    }
    return make_edit(space, vocabulary_of(space).reasons[token], changes)


def strides_toward(row: DesignRow, goal: DesignRow, space: DesignSpace) -> dict[str, int]:
    """By how many steps, two at most, each column is to move toward `goal`, whether they fit or not."""
    changes = {
        column.name: (find_middle(goal, column) - find_middle(row, column)) / column.step for column in space.columns
    }
    return {name: max(min(STRIDES), min(max(STRIDES), round(change))) for name, change in changes.items()}


@dataclass
class ProportionalTeacher(RuleTeacher):
    """Data d_s ~ w_s^power over the strata s, as Prioritized Level Replay does with levels (arXiv 2010.03934).

    With v the valid rate of a stratum, w = v (1 - v), or 1 - v if the objective is the regret. The problems of a
    stratum that have a trait and those that lack it share its data by the same formula, so a failing trait goes.
    Its share stays if one of the two rates is unknown. These columns move by two steps at most; levels move
    as the threshold rule moves them that seeks the same objective. A stratum without outcomes stays.
    """

    objective: Objective = "learnability"
    power: Power = 1.0

    def make_delta(self, evidence: Evidence, design: Design, space: DesignSpace) -> Delta:
        """See `RuleTeacher.make_delta`."""
        rules, edits = RulesTeacher.for_objective(self.objective), {}
        seen = map_outcomes(evidence, design, space)
        data = sum(design.strata[stratum][space.share.name] for stratum in seen)
        for stratum, share in self._divide_data({one: tally.valid_rate for one, tally in seen.items()}).items():
            row, (strides, token) = design.strata[stratum], rules.choose_strides(seen[stratum], space)
            goal = {**row, space.share.name: data * share}
            for knob in (space.knobs[place] for place in space.traits):
                rates = _rate_by_trait(seen[stratum], knob)
                goal[knob.name] = self._divide_data(rates)[True] if len(rates) == 2 else row[knob.name]
            levels = {space.knobs[place].name: strides.get(space.knobs[place].name, 0) for place in space.levels}
            edits[stratum] = make_step_edit(stratum, row, strides_toward(row, goal, space) | levels, token, space)
        return join_edits(edits)

    def _divide_data(self, rates: Mapping[KnobKind, float]) -> dict[KnobKind, float]:
        """The share of all data that each kind of problems gets, by its valid rate."""
        worth = {kind: value_of(rate, self.objective) ** self.power for kind, rate in rates.items()}
        total = sum(worth.values())
        return {kind: part / total if total else 1 / len(worth) for kind, part in worth.items()}


def _rate_by_trait(tally: Tally, knob: Knob) -> dict[bool, float]:
    """The valid rate of the problems that have a trait, and of those that lack it, if there are any."""
    having = tally.traits.get(knob.name, Tally(0, 0))
    parts = {False: subtract_tally(tally, having), True: having}
    return {has: part.valid_rate for has, part in parts.items() if part.problems}
