"""RLVE's rule: the level rises by one where the hardest level is solved. Zeng et al. 2025, arXiv 2511.07317."""

from typing import Annotated, Any

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.support import Share
from lakewright.engineer.curriculum_cells import Cell, config_of, difficulty, grid
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, decided, moved_to
from lakewright.engineer.random_generators import Key

REASON = "the window of levels whose hardest is not solved yet"
Levels = Annotated[int, msgspec.Meta(ge=2, le=100)]


class RlveTeacher:
    """Boards are drawn uniformly from the levels l .. h. With R_h the share of valid plans at level h in the stage,

        h <- h + 1 where R_h >= threshold,    l <- max(0, h - window + 1),    h = 0 at first.

    The level of a cell of the grid is floor(levels x its difficulty), where that is
    `lakewright.engineer.curriculum_cells.difficulty`. A stage that drew nothing of level h leaves it as it is.
    """

    def __init__(self, threshold: Share = 0.9, window: Levels = 4, levels: Levels = 12) -> None:
        self.threshold = threshold
        self.window = window
        self.levels = levels
        self.hardest = 0

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The config of the window; no chance in it. Without rollouts, no edits."""
        if not evidence.groups:
            return decided(ConfigDelta({}))
        mine = [
            seen.groups
            for seen in evidence.groups
            if seen.size in config.sizes
            and self.level(Cell(seen.size, seen.hole_ratio, seen.forced), config) == self.hardest
        ]
        completions = sum(groups.completions for groups in mine)
        if completions and sum(groups.valid for groups in mine) / completions >= self.threshold:
            self.hardest = min(self.hardest + 1, self.levels - 1)
        return moved_to(config, config_of(config, dict.fromkeys(self.cells(config), 1.0)), REASON)

    def level(self, cell: Cell, config: EnvConfig) -> int:
        """0 .. levels - 1."""
        return min(self.levels - 1, int(self.levels * difficulty(cell, config)))

    def cells(self, config: EnvConfig) -> list[Cell]:
        """The cells of the window; the easiest of all where it holds none."""
        lowest = max(0, self.hardest - self.window + 1)
        window = [cell for cell in grid(config) if lowest <= self.level(cell, config) <= self.hardest]
        return window or [min(grid(config), key=lambda cell: difficulty(cell, config))]

    def state_dict(self) -> dict[str, Any]:
        """h."""
        return {"hardest": self.hardest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """h."""
        self.hardest = state["hardest"]
