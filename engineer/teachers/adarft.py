"""AdaRFT: a target difficulty that follows the success rate. Shi et al. 2025, arXiv 2504.05520."""

import math
from dataclasses import dataclass, field

from lakewright.core_jax.support import Count, Share, Weight
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import CellTeacher
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace


@dataclass
class AdaRFTTeacher(CellTeacher):
    """d <- clip(d + eta tanh(alpha (R - beta)), 0, 1), with R the success rate of the stage's training rollouts.

    The next stage draws from the `nearest` cells of the grid, those whose difficulty is nearest to d, all alike. The
    difficulty of a cell is `DesignSpace.hardness`; the first d is that of the current design. The
    paper's scale is 0 .. 100 with eta = 50, alpha = 2, beta = 0.5.
    """

    reason = "the cells nearest to the target difficulty"
    eta: Weight = 0.5
    alpha: Weight = 2.0
    beta: Share = 0.5
    nearest: Count = 10
    target: float | None = field(default=None, init=False)

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """The cells about the moved target, all alike. Deterministic."""
        completions = sum(cell.groups.completions for cell in evidence.groups)
        success = sum(cell.groups.valid for cell in evidence.groups) / completions
        if self.target is None:
            self.target = sum(
                space.hardness(cell, design.strata) * share for cell, share in space.cells(design).items()
            )
        self.target = self.move_target(self.target, success)
        return dict.fromkeys(self._list_near(design, space), 1.0)

    def move_target(self, target: float, success: float) -> float:
        """The target after a success rate."""
        return min(1.0, max(0.0, target + self.eta * math.tanh(self.alpha * (success - self.beta))))

    def _list_near(self, design: Design, space: DesignSpace) -> list[Cell]:
        def measure_distance(cell: Cell) -> float:
            return abs(space.hardness(cell, design.strata) - (self.target or 0))

        return sorted(space.grid(design.strata), key=measure_distance)[: self.nearest]
