"""RLVE's rule: the level rises by one where the hardest level is solved. Zeng et al. 2025, arXiv 2511.07317."""

from typing import Annotated, Any

import msgspec

from lakewright.core_jax.support import Share
from lakewright.engineer.design import Design, weigh_cells
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import Cell, DesignSpace

REASON = "the window of levels whose hardest is not solved yet"
Levels = Annotated[int, msgspec.Meta(ge=2, le=100)]


class RlveTeacher:
    """Problems are drawn uniformly from the levels l .. h. With R_h the share of valid answers at level h in the stage,

        h <- h + 1 where R_h >= threshold,    l <- max(0, h - window + 1),    h = 0 at first.

    The level of a cell of the grid is floor(levels x its difficulty), where that is
    `DesignSpace.hardness`. A stage that drew nothing of level h leaves it as it is.
    """

    def __init__(self, threshold: Share = 0.9, window: Levels = 4, levels: Levels = 12) -> None:
        self.threshold = threshold
        self.window = window
        self.levels = levels
        self.hardest = 0

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of the window. Deterministic. Without rollouts, no edits."""
        if not evidence.groups:
            return propose_nothing()
        mine = [
            seen.groups
            for seen in evidence.groups
            if seen.cell.stratum in design.strata and self.level(seen.cell, design, space) == self.hardest
        ]
        completions = sum(groups.completions for groups in mine)
        if completions and sum(groups.valid for groups in mine) / completions >= self.threshold:
            self.hardest = min(self.hardest + 1, self.levels - 1)
        weights = dict.fromkeys(self.cells(design, space), 1.0)
        return propose_rows(design, weigh_cells(weights, design, space), REASON, space)

    def level(self, cell: Cell, design: Design, space: DesignSpace) -> int:
        """0 .. levels - 1."""
        return min(self.levels - 1, int(self.levels * space.hardness(cell, design.strata)))

    def cells(self, design: Design, space: DesignSpace) -> list[Cell]:
        """The cells of the window; the easiest of all where it holds none."""
        lowest = max(0, self.hardest - self.window + 1)
        grid = space.grid(design.strata)
        window = [cell for cell in grid if lowest <= self.level(cell, design, space) <= self.hardest]
        return window or [min(grid, key=lambda cell: space.hardness(cell, design.strata))]

    def state_dict(self) -> dict[str, Any]:
        """h."""
        return {"hardest": self.hardest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """h."""
        self.hardest = state["hardest"]
