"""Thompson sampling on informative groups."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.plugins import Draws
from lakewright.engineer.proposal import CellTeacher
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.space import DesignSpace


@dataclass
class ThompsonTeacher(CellTeacher):
    """A Beta posterior of "a group's rewards are not all equal" for each cell; Thompson 1933, Chapelle and Li 2011.

    With s informative and f other groups of a cell in a stage: S <- decay S + s and F <- decay F + f. For each of
    `draws` slots theta_c ~ Beta(1 + S_c, 1 + F_c) is drawn for every cell of the grid, and the slot goes to the
    largest; the shares of the slots become a design by `weigh_cells`.
    """

    reason = "the cells whose groups are most likely informative"
    decay: Share = 0.8
    draws: Draws = 256
    counts: dict[Cell, tuple[float, float]] = field(default_factory=dict, init=False)  # S and F

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """The slots of each cell."""
        self._update_counts(evidence, design, space)
        cells, rng = space.grid(design.strata), numpy_rng(key)
        counts = np.array([self.counts.get(cell, (0.0, 0.0)) for cell in cells])
        drawn = rng.beta(1 + counts[:, 0], 1 + counts[:, 1], size=(self.draws, len(cells)))
        slots = Counter(cells[place] for place in drawn.argmax(axis=1))
        return {cell: float(count) for cell, count in slots.items()}

    def _update_counts(self, evidence: Evidence, design: Design, space: DesignSpace) -> None:
        self.counts = {cell: (self.decay * s, self.decay * f) for cell, (s, f) in self.counts.items()}
        for seen in evidence.groups:
            cell = space.bin_cell(seen.cell, design.strata)
            s, f = self.counts.get(cell, (0.0, 0.0))
            informative = seen.groups.informative
            self.counts[cell] = (s + informative, f + seen.groups.groups - informative)
