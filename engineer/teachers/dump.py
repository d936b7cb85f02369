"""DUMP: UCB on the magnitude of the advantage. Wang et al. 2025, arXiv 2504.09710."""

import math
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.support import Count
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import weigh_cells
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import Proposal, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

REASON = "the cells of the largest upper confidence bound of the advantage"
Temperature = Annotated[float, msgspec.Meta(ge=0.01)]  # less, and exp(UCB / tau) overflows


class DumpTeacher:
    """p_c ~ exp(UCB_c / tau) over the grid of cells, with

        UCB_c = L_c + sqrt(2 ln(n + 1) / (n_c + 1)),

    L_c the mean absolute GRPO advantage of the cell's last `window` groups, n_c the groups of the cell so far and n
    those of all cells; L_c = 0 for a cell that was never drawn. p becomes a design by
    `weigh_cells`.
    """

    def __init__(self, tau: Temperature = 0.1, window: Count = 300) -> None:
        self.tau = tau
        self.window = window
        self.counts: dict[Cell, int] = {}
        self.recent: dict[Cell, list[tuple[int, float]]] = {}  # groups and their mean advantage, a stage each

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of p. Deterministic. Without rollouts, no edits."""
        if not evidence.groups:
            return propose_nothing()
        for seen in evidence.groups:
            cell = space.bin_cell(seen.cell, design.strata)
            self._add_groups(cell, seen.groups.groups, seen.groups.advantage)
        bounds = {cell: self.upper_bound(cell) for cell in space.grid(design.strata)}
        top = max(bounds.values())
        weights = {cell: math.exp((bound - top) / self.tau) for cell, bound in bounds.items()}
        return propose_rows(design, weigh_cells(weights, design, space), REASON, space)

    def upper_bound(self, cell: Cell) -> float:
        """UCB of a cell."""
        parts = self.recent.get(cell, [])
        groups = sum(count for count, _ in parts)
        mean = sum(count * value for count, value in parts) / groups if groups else 0.0
        total = sum(self.counts.values())
        return mean + math.sqrt(2 * math.log(total + 1) / (self.counts.get(cell, 0) + 1))

    def state_dict(self) -> dict[str, Any]:
        """n and the window of each cell."""
        recent = {str(cell): [list(part) for part in parts] for cell, parts in self.recent.items()}
        return {"counts": {str(cell): count for cell, count in self.counts.items()}, "recent": recent}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """n and the window of each cell."""
        self.counts = {Cell.from_name(name): count for name, count in state["counts"].items()}
        self.recent = {
            Cell.from_name(name): [(count, value) for count, value in parts] for name, parts in state["recent"].items()
        }

    def _add_groups(self, cell: Cell, groups: int, advantage: float) -> None:
        self.counts[cell] = self.counts.get(cell, 0) + groups
        kept, room = [], self.window
        for count, value in [(groups, advantage), *reversed(self.recent.get(cell, []))]:
            if room > 0 and count:
                kept.append((min(count, room), value))
                room -= count
        self.recent[cell] = kept[::-1]
