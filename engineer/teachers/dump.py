"""DUMP: UCB on the magnitude of the advantage. Wang et al. 2025, arXiv 2504.09710."""

import math
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from lakewright.core_jax.support import Count
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import CellTeacher
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

Temperature = Annotated[float, msgspec.Meta(ge=0.01)]  # less, and exp(UCB / tau) overflows


@dataclass
class DumpTeacher(CellTeacher):
    """p_c ~ exp(UCB_c / tau) over the grid of cells, with

        UCB_c = L_c + sqrt(2 ln(n + 1) / (n_c + 1)),

    L_c the mean absolute GRPO advantage of the cell's last `window` groups, n_c the groups of the cell so far and n
    those of all cells; L_c = 0 for a cell that was never drawn. p becomes a design by
    `weigh_cells`.
    """

    reason = "the cells of the largest upper confidence bound of the advantage"
    tau: Temperature = 0.1
    window: Count = 300
    counts: dict[Cell, int] = field(default_factory=dict, init=False)
    recent: dict[Cell, list[tuple[int, float]]] = field(default_factory=dict, init=False)  # groups, mean advantage

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """p, not normalised. Deterministic."""
        for seen in evidence.groups:
            cell = space.bin_cell(seen.cell, design.strata)
            self._add_groups(cell, seen.groups.groups, seen.groups.advantage)
        bounds = {cell: self.upper_bound(cell) for cell in space.grid(design.strata)}
        top = max(bounds.values())
        return {cell: math.exp((bound - top) / self.tau) for cell, bound in bounds.items()}

    def upper_bound(self, cell: Cell) -> float:
        """UCB of a cell."""
        parts = self.recent.get(cell, [])
        groups = sum(count for count, _ in parts)
        mean = sum(count * value for count, value in parts) / groups if groups else 0.0
        total = sum(self.counts.values())
        return mean + math.sqrt(2 * math.log(total + 1) / (self.counts.get(cell, 0) + 1))

    def _add_groups(self, cell: Cell, groups: int, advantage: float) -> None:
        self.counts[cell] = self.counts.get(cell, 0) + groups
        kept, room = [], self.window
        for count, value in [(groups, advantage), *reversed(self.recent.get(cell, []))]:
            if room > 0 and count:
                kept.append((min(count, room), value))
                room -= count
        self.recent[cell] = kept[::-1]
