"""The threshold rule: harder where the policy succeeds, easier where it fails."""

from typing import Self

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import Outcomes
from lakewright.core_jax.support import Share
from lakewright.core_jax.terms import FAILURE_NAMES
from lakewright.engineer.delta import ConfigDelta, SizeEdit
from lakewright.engineer.difficulty import Objective
from lakewright.engineer.evidence import FRONTIER, REASONS, TOO_EASY, TOO_HARD, Evidence
from lakewright.engineer.proposal import Proposal, Stateless, decided
from lakewright.engineer.random_generators import Key
from lakewright.engineer.teachers.step_edits import step_edit


class RulesTeacher(Stateless):
    """Per map size, by the valid rate v (reasoning-gym's coaching rule, with the paper's advice on data):

    v > harder_above: more waits, more holes, a bit less data. v < easier_below: fewer holes, fewer waits, and less
    data, as it gives no signal. Between them, at the frontier: more data. Hole and wait move two steps where v is
    nearer to 1 (or 0) than to the threshold. A size without outcomes stays as it is.
    """

    @classmethod
    def seeking(cls, objective: Objective) -> Self:
        """The rule whose frontier is where boards are worth most: for learnability, p (1 - p), around one half.

        The regret pays until about 0.6 (docs/results.md, "Does the trial predict?"), so there only a valid rate that is
        nearly zero is too low.
        """
        return cls() if objective == "learnability" else cls(easier_below=0.1, harder_above=0.4)

    def __init__(self, easier_below: Share = 0.3, harder_above: Share = 0.7) -> None:
        if easier_below > harder_above:
            raise InputError(
                f"teacher_options: easier_below is {easier_below:g}, more than harder_above {harder_above:g}; "
                "choose less"
            )
        self.easier_below = easier_below
        self.harder_above = harder_above

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The delta of the rule; no chance in it."""
        return decided(self.delta(evidence, config))

    def delta(self, evidence: Evidence, config: EnvConfig) -> ConfigDelta:
        """An edit for each size of `config` that the evidence is about."""
        seen = outcomes_of(evidence, config)
        edits = {size: self._edit(config, size, outcomes) for size, outcomes in seen.items()}
        return ConfigDelta({size: edit for size, edit in edits.items() if edit})

    def _edit(self, config: EnvConfig, size: int, outcomes: Outcomes) -> SizeEdit | None:
        strides, token = self.strides(outcomes)
        return step_edit(config.sizes[size], strides, REASONS[token])

    def strides(self, outcomes: Outcomes) -> tuple[dict[str, int], str]:
        """By how many steps each ratio of a size is to move, and the token of the reason."""
        valid = outcomes.rate(outcomes.valid)
        if valid > self.harder_above:
            stride = 2 if valid > (1 + self.harder_above) / 2 else 1
            return {"data_ratio": -1, "hole_ratio": stride, "wait_ratio": stride}, TOO_EASY
        if valid < self.easier_below:
            stride = 2 if valid < self.easier_below / 2 else 1
            return {"data_ratio": -1, "hole_ratio": -stride, "wait_ratio": -stride}, _dominating(outcomes)
        return {"data_ratio": 1}, FRONTIER


def outcomes_of(evidence: Evidence, config: EnvConfig) -> dict[int, Outcomes]:
    """Of each size of `config`, ascending, its outcomes; a size without any boards is left out."""
    seen = {size: evidence.outcomes[size] for size in sorted(config.sizes) if size in evidence.outcomes}
    return {size: outcomes for size, outcomes in seen.items() if outcomes.boards}


def _dominating(outcomes: Outcomes) -> str:
    """The reason token of the most frequent failure."""
    name = max(FAILURE_NAMES[1:], key=lambda name: outcomes.failures.get(name, 0))
    return f"<because_{name}>" if outcomes.failures.get(name) else TOO_HARD
