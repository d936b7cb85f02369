"""SEC, a bandit on the absolute advantage: Chen et al. 2025, "Self-evolving curriculum", arXiv 2505.14970."""

import math
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import CellTeacher
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

Temperature = Annotated[float, msgspec.Meta(ge=0.01)]  # less, and exp(Q / tau) overflows


@dataclass
class SecTeacher(CellTeacher):
    """Q_c <- rate E[abs A] + (1 - rate) Q_c of each cell c that was trained on, Q = 0 at first; p_c ~ exp(Q_c / tau).

    E[abs A] is the mean over a cell's groups of the mean absolute GRPO advantage. p over the grid of cells becomes a
    design by `weigh_cells`.
    """

    reason = "the cells where the advantage was largest"
    rate: Share = 0.5
    tau: Temperature = 0.2
    values: dict[Cell, float] = field(default_factory=dict, init=False)  # Q

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """p. Deterministic."""
        for seen in evidence.groups:
            cell = space.bin_cell(seen.cell, design.strata)
            self.values[cell] = self.rate * seen.groups.advantage + (1 - self.rate) * self.values.get(cell, 0.0)
        return self.softmax_shares(space.grid(design.strata))

    def softmax_shares(self, grid: list[Cell]) -> dict[Cell, float]:
        """p of every cell of the grid."""
        weights = {cell: math.exp(self.values.get(cell, 0.0) / self.tau) for cell in grid}
        total = math.fsum(weights.values())
        return {cell: weight / total for cell, weight in weights.items()}
