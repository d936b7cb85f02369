"""The rule that shares out data in proportion to what a size's boards are worth to the training."""

from collections.abc import Mapping

from core_jax.config import EnvConfig
from core_jax.results import Outcomes
from engineer.delta import ConfigDelta
from engineer.difficulty import Objective, value_of
from engineer.evidence import REASONS, STEPS, STRIDES, Evidence
from engineer.options import Power
from engineer.proposal import Proposal, Stateless, decided
from engineer.random_generators import Key
from engineer.teachers.rules import RulesTeacher, outcomes_of
from engineer.teachers.step_edits import step_edit


class ProportionalTeacher(Stateless):
    """Data d_s ~ w_s^power over the map sizes s, as Prioritized Level Replay does with levels (arXiv 2010.03934).

    With v the valid rate of a size, w = v (1 - v), or 1 - v where the objective is the regret. Data move towards that
    by two steps at most; holes and waits move as the threshold rule moves them that seeks the same objective. A size
    without outcomes stays as it is.
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
        edits = {}
        for size, share in self._shares(seen, config).items():
            strides, token = self.rules.strides(seen[size])
            strides["data_ratio"] = _steps(share - config.sizes[size].data_ratio)
            edits[size] = step_edit(config.sizes[size], strides, REASONS[token])
        return ConfigDelta({size: edit for size, edit in edits.items() if edit})

    def _shares(self, seen: Mapping[int, Outcomes], config: EnvConfig) -> dict[int, float]:
        """What each size is to have of the data that these sizes have now."""
        rates = {size: outcomes.rate(outcomes.valid) for size, outcomes in seen.items()}
        worth = {size: value_of(rate, self.objective) ** self.power for size, rate in rates.items()}
        data = sum(config.sizes[size].data_ratio for size in seen)
        total = sum(worth.values())
        return {size: data * (part / total if total else 1 / len(seen)) for size, part in worth.items()}


def _steps(change: float) -> int:
    return max(min(STRIDES), min(max(STRIDES), round(change / STEPS["data_ratio"])))
