"""SEC, a bandit on the absolute advantage: Chen et al. 2025, "Self-evolving curriculum", arXiv 2505.14970."""

import math
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import weigh_cells
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import Proposal, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

REASON = "the cells where the advantage was largest"
Temperature = Annotated[float, msgspec.Meta(ge=0.01)]  # less, and exp(Q / tau) overflows


class SecTeacher:
    """Q_c <- rate E[abs A] + (1 - rate) Q_c of each cell c that was trained on, Q = 0 at first; p_c ~ exp(Q_c / tau).

    E[abs A] is the mean over a cell's groups of the mean absolute GRPO advantage. p over the grid of cells becomes a
    design by `weigh_cells`.
    """

    def __init__(self, rate: Share = 0.5, tau: Temperature = 0.2) -> None:
        self.rate = rate
        self.tau = tau
        self.values: dict[Cell, float] = {}

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of p. Deterministic. Without rollouts, no edits."""
        if not evidence.groups:
            return propose_nothing()
        for seen in evidence.groups:
            cell = space.bin_cell(seen.cell, design.strata)
            self.values[cell] = self.rate * seen.groups.advantage + (1 - self.rate) * self.values.get(cell, 0.0)
        weights = self.softmax_shares(space.grid(design.strata))
        return propose_rows(design, weigh_cells(weights, design, space), REASON, space)

    def softmax_shares(self, grid: list[Cell]) -> dict[Cell, float]:
        """p of every cell of the grid."""
        weights = {cell: math.exp(self.values.get(cell, 0.0) / self.tau) for cell in grid}
        total = math.fsum(weights.values())
        return {cell: weight / total for cell, weight in weights.items()}

    def state_dict(self) -> dict[str, Any]:
        """Q by cell."""
        return {"values": {str(cell): value for cell, value in self.values.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Q by cell."""
        self.values = {Cell.from_name(name): float(value) for name, value in state["values"].items()}
