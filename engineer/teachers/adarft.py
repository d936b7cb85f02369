"""AdaRFT: a target difficulty that follows the success rate. Shi et al. 2025, arXiv 2504.05520."""

import math
from typing import Any

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.support import Count, Share, Weight
from lakewright.engineer.curriculum_cells import config_of, difficulty, grid, weights_of
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, decided, moved_to
from lakewright.engineer.random_generators import Key

REASON = "the cells nearest to the target difficulty"


class AdaRFTTeacher:
    """d <- clip(d + eta tanh(alpha (R - beta)), 0, 1), with R the success rate of the stage's training rollouts.

    The next stage draws from the `nearest` cells of the grid, those whose difficulty is nearest to d, all alike. The
    difficulty of a cell is `engineer.curriculum_cells.difficulty`; the first d is that of the current config. The
    paper's scale is 0 .. 100 with eta = 50, alpha = 2, beta = 0.5.
    """

    def __init__(self, eta: Weight = 0.5, alpha: Weight = 2.0, beta: Share = 0.5, nearest: Count = 10) -> None:
        self.eta = eta
        self.alpha = alpha
        self.beta = beta
        self.nearest = nearest
        self.target: float | None = None

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The cells about the moved target; no chance in it. Without rollouts, no edits."""
        completions = sum(cell.groups.completions for cell in evidence.groups)
        if not completions:
            return decided(ConfigDelta({}))
        success = sum(cell.groups.valid for cell in evidence.groups) / completions
        if self.target is None:
            self.target = sum(difficulty(cell, config) * share for cell, share in weights_of(config).items())
        self.target = self.moved(self.target, success)
        return moved_to(config, config_of(config, dict.fromkeys(self._near(config), 1.0)), REASON)

    def moved(self, target: float, success: float) -> float:
        """The target after a success rate."""
        return min(1.0, max(0.0, target + self.eta * math.tanh(self.alpha * (success - self.beta))))

    def state_dict(self) -> dict[str, Any]:
        """The target difficulty."""
        return {"target": self.target}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The target difficulty."""
        self.target = state["target"]

    def _near(self, config: EnvConfig) -> list:
        return sorted(grid(config), key=lambda cell: abs(difficulty(cell, config) - (self.target or 0)))[: self.nearest]
