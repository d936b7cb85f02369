"""prime-rl's difficulty pools: problems that are nearly always or hardly ever solved are drawn less.

Prime Intellect 2026, `DifficultyPoolSampler` in https://github.com/PrimeIntellect-ai/prime-rl.
"""

from dataclasses import dataclass, field

from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import CellTeacher, success_by_bin
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers.rules import check_order


@dataclass
class DifficultyPoolsTeacher(CellTeacher):
    """w_c of a cell of the grid by R_c, the share of valid answers when it was last rolled out:

        w_c = weight where R_c <= hard or R_c > easy, 1 between, and 1 for a cell that was never rolled out.

    The source does so for the single tasks of a finite set, by their mean reward.
    """

    reason = "the cells that are solved sometimes"
    hard: Share = 0.25
    easy: Share = 0.75
    weight: Share = 0.2
    latest: dict[Cell, float] = field(default_factory=dict, init=False)  # R

    def __post_init__(self) -> None:
        check_order("hard", self.hard, "easy", self.easy)

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """w. Deterministic."""
        self.latest |= success_by_bin(evidence, design, space)
        return {cell: self.weigh_cell(cell) for cell in space.grid(design.strata)}

    def weigh_cell(self, cell: Cell) -> float:
        """w_c."""
        success = self.latest.get(cell)
        return 1.0 if success is None or self.hard < success <= self.easy else self.weight
