"""prime-rl's difficulty pools: what is nearly always or hardly ever solved is drawn less.

Prime Intellect 2026, `DifficultyPoolSampler` in https://github.com/PrimeIntellect-ai/prime-rl.
"""

from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import weigh_cells
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import Proposal, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

REASON = "the cells that are solved sometimes"


class DifficultyPoolsTeacher:
    """w_c of a cell of the grid by R_c, the share of valid answers when it was last rolled out:

        w_c = weight where R_c <= hard or R_c > easy, 1 between, and 1 for a cell that was never rolled out.

    The source does so for the single tasks of a finite set, by their mean reward.
    """

    def __init__(self, hard: Share = 0.25, easy: Share = 0.75, weight: Share = 0.2) -> None:
        if hard > easy:
            raise InputError(f"teacher_options: hard is {hard:g}, more than easy {easy:g}; choose less")
        self.hard = hard
        self.easy = easy
        self.weight = weight
        self.latest: dict[Cell, float] = {}

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of w. Deterministic. Without rollouts, or where no cell has a weight, no edits."""
        if not evidence.groups:
            return propose_nothing()
        totals: dict[Cell, list[int]] = {}
        for seen in evidence.groups:
            counts = totals.setdefault(space.bin_cell(seen.cell, design.strata), [0, 0])
            counts[0] += seen.groups.valid
            counts[1] += seen.groups.completions
        self.latest |= {cell: valid / answers for cell, (valid, answers) in totals.items() if answers}
        weights = {cell: self.weigh_cell(cell) for cell in space.grid(design.strata)}
        if not any(weights.values()):
            return propose_nothing()
        return propose_rows(design, weigh_cells(weights, design, space), REASON, space)

    def weigh_cell(self, cell: Cell) -> float:
        """w_c."""
        success = self.latest.get(cell)
        return 1.0 if success is None or self.hard < success <= self.easy else self.weight

    def state_dict(self) -> dict[str, Any]:
        """R by cell."""
        return {"latest": {str(cell): success for cell, success in self.latest.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """R by cell."""
        self.latest = {Cell.from_name(name): float(success) for name, success in state["latest"].items()}
