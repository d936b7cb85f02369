"""Learning progress: what the success rate changes on is drawn. Kanitscheider et al. 2021, arXiv 2106.14876.

The formulas are those of `LearningProgress` in Syllabus, https://github.com/RyanNavillus/Syllabus.
"""

from dataclasses import dataclass, field

import numpy as np

from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import CellTeacher, success_by_bin
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace


@dataclass
class LearningProgressTeacher(CellTeacher):
    """A fast and a slow mean of the success rate R_c of each cell, both 0 at first:

        fast <- alpha R + (1 - alpha) fast,    slow <- alpha fast + (1 - alpha) slow,    LP = abs(f(fast) - f(slow)),
        f(p) = p (1 - theta) / (p + theta (1 - 2 p)),

    where f looks more closely at small rates. Among the cells of LP > 0, p_c ~ sigmoid((LP_c - mean) / deviation), and
    the others get nothing; where none has any, all are alike. A stage counts as one evaluation of the cells that it
    rolled out; the source evaluates all of its tasks.
    """

    reason = "the cells whose success rate changes"
    alpha: Share = 0.1
    theta: Share = 0.1
    means: dict[Cell, tuple[float, float]] = field(default_factory=dict, init=False)  # fast and slow

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """p. Deterministic."""
        for cell, success in success_by_bin(evidence, design, space).items():
            fast, slow = self.means.get(cell, (0.0, 0.0))
            fast = self.alpha * success + (1 - self.alpha) * fast
            self.means[cell] = fast, self.alpha * fast + (1 - self.alpha) * slow
        cells = space.grid(design.strata)
        return dict(zip(cells, self.weigh_progress([self.measure_progress(cell) for cell in cells]), strict=True))

    def measure_progress(self, cell: Cell) -> float:
        """LP of a cell."""
        fast, slow = self.means.get(cell, (0.0, 0.0))
        return abs(self._stretch_rate(fast) - self._stretch_rate(slow))

    def weigh_progress(self, progress: list[float]) -> list[float]:
        """p of cells by their LP."""
        found = np.array(progress)
        chosen = found > 0 if (found > 0).any() else np.ones(len(found), bool)
        away = found[chosen] - found[chosen].mean()
        weights = np.zeros(len(found))
        weights[chosen] = 1 / (1 + np.exp(-away / (found[chosen].std() or 1.0)))
        return (weights / weights.sum()).tolist()

    def _stretch_rate(self, p: float) -> float:
        below = p + self.theta * (1 - 2 * p)
        return p * (1 - self.theta) / below if below else 0.0
