"""The rule that shares out data in proportion to what a size's boards are worth to the training."""

from collections.abc import Mapping
from typing import TypeVar

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import Outcomes
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.difficulty import Objective, value_of
from lakewright.engineer.evidence import REASONS, Evidence
from lakewright.engineer.options import Power
from lakewright.engineer.proposal import Proposal, Stateless, decided
from lakewright.engineer.random_generators import Key
from lakewright.engineer.teachers.rules import RulesTeacher, outcomes_of
from lakewright.engineer.teachers.step_edits import step_edit, stride_toward

Kind = TypeVar("Kind", bool, int)


class ProportionalTeacher(Stateless):
    """Data d_s ~ w_s^power over the map sizes s, as Prioritized Level Replay does with levels (arXiv 2010.03934).

    With v the valid rate of a size, w = v (1 - v), or 1 - v where the objective is the regret. The boards of a size
    that force a wait and those that do not share its data by the same formula, so that waits go where they fail; the
    wait ratio stays where one of the two rates is unknown. Both ratios move by two steps at most; holes move as the
    threshold rule moves them that seeks the same objective. A size without outcomes stays as it is.
    """

    def __init__(self, objective: Objective = "learnability", power: Power = 1.0) -> None:
        self.objective: Objective = objective
        self.power = power
        self.rules = RulesTeacher.seeking(objective)

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The delta of the rule; no chance in it."""
        return decided(self.delta(evidence, config))

    def delta(self, evidence: Evidence, config: EnvConfig) -> ConfigDelta:
        """An edit for each size of `config` that the evidence is about and that is to change."""
        seen = outcomes_of(evidence, config)
        rates = {size: outcomes.rate(outcomes.valid) for size, outcomes in seen.items()}
        data = sum(config.sizes[size].data_ratio for size in seen)
        edits = {}
        for size, share in self._shares(rates).items():
            cell, (strides, token) = config.sizes[size], self.rules.strides(seen[size])
            goal = SizeConfig(data * share, cell.hole_ratio, self._wait_ratio(seen[size], cell))
            holes = {"hole_ratio": strides.get("hole_ratio", 0)}
            edits[size] = step_edit(cell, stride_toward(cell, goal) | holes, REASONS[token])
        return ConfigDelta({size: edit for size, edit in edits.items() if edit})

    def _wait_ratio(self, outcomes: Outcomes, cell: SizeConfig) -> float:
        rates = _rates_by_wait(outcomes)
        return self._shares(rates)[True] if len(rates) == 2 else cell.wait_ratio

    def _shares(self, rates: Mapping[Kind, float]) -> dict[Kind, float]:
        """What each kind of boards, by its valid rate, is to have of the data of all."""
        worth = {kind: value_of(rate, self.objective) ** self.power for kind, rate in rates.items()}
        total = sum(worth.values())
        return {kind: part / total if total else 1 / len(worth) for kind, part in worth.items()}


def _rates_by_wait(outcomes: Outcomes) -> dict[bool, float]:
    """The valid rate of the boards that force a wait, and of those that do not, where there are any."""
    free, free_valid = outcomes.boards - outcomes.wait_boards, outcomes.valid - outcomes.wait_valid
    counts = {False: (free, free_valid), True: (outcomes.wait_boards, outcomes.wait_valid)}
    return {forced: valid / boards for forced, (boards, valid) in counts.items() if boards}
