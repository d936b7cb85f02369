"""Teachers that weigh cells by their rollouts: SEC, DUMP, Thompson sampling and SFL."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from lakewright.core_jax.support import Count, Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.plugins import Draws
from lakewright.engineer.proposal import CellTeacher, Proposal
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.space import DesignSpace

Temperature = Annotated[float, msgspec.Meta(ge=0.01)]  # less, and exp(value / tau) overflows


@dataclass
class SecTeacher(CellTeacher):
    """SEC, "Self-evolving curriculum" (Chen et al. 2025, arXiv 2505.14970):

    Q_c <- rate E[abs A] + (1 - rate) Q_c of each cell c that was trained on, Q = 0 at first; p_c ~ exp(Q_c / tau).

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


@dataclass
class DumpTeacher(CellTeacher):
    """DUMP (Wang et al. 2025, arXiv 2504.09710): p_c ~ exp(UCB_c / tau) over the grid of cells, with

        UCB_c = L_c + sqrt(2 ln(n + 1) / (n_c + 1)),

    L_c the mean absolute GRPO advantage of the cell's last `window` groups, n_c the groups of the cell so far and n of
    all cells; L_c = 0 for a cell that was never drawn. p becomes a design by `weigh_cells`.
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
        # Less the largest, so that no power overflows; the weights are normalised later.
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
        # The newest groups first, until the window is full.
        kept, room = [], self.window
        for count, value in [(groups, advantage), *reversed(self.recent.get(cell, []))]:
            if room > 0 and count:
                kept.append((min(count, room), value))
                room -= count
        self.recent[cell] = kept[::-1]


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
        # Cells without new groups fade, too, so that an old failure is tried again.
        self.counts = {cell: (self.decay * s, self.decay * f) for cell, (s, f) in self.counts.items()}
        for seen in evidence.groups:
            cell, informative = space.bin_cell(seen.cell, design.strata), seen.groups.informative
            s, f = self.counts.get(cell, (0.0, 0.0))
            self.counts[cell] = (s + informative, f + seen.groups.groups - informative)
        cells, rng = space.grid(design.strata), numpy_rng(key)
        counts = np.array([self.counts.get(cell, (0.0, 0.0)) for cell in cells])
        drawn = rng.beta(1 + counts[:, 0], 1 + counts[:, 1], size=(self.draws, len(cells)))
        slots = Counter(cells[place] for place in drawn.argmax(axis=1))
        return {cell: float(count) for cell, count in slots.items()}


@dataclass
class SflTeacher(CellTeacher):
    """SFL, sampling for learnability (Rutherford et al. 2024, arXiv 2408.15099), on the level of designs.

    It keeps the `top` share of the cells that were trained on by mean p (1 - p) of their groups, all alike, and mixes
    them with the first design: `mix` of the problems from these cells, the rest from that design.

    The paper keeps single levels; that is the sampler of the same name.
    """

    reason = "the cells of the largest p (1 - p)"
    top: Share = 0.5
    mix: Share = 0.5
    first: Design | None = field(default=None, init=False)

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of the mixture. Without rollouts, no edits."""
        self.first = self.first or design
        return super().propose(evidence, design, space, key)

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """The mixture. Deterministic."""
        order = sorted(evidence.groups, key=lambda cell: -cell.groups.learnability)
        best = [seen.cell for seen in order[: max(1, round(self.top * len(order)))]]
        weights = {cell: (1 - self.mix) * share for cell, share in space.cells(self.first or design).items()}
        for cell in best:
            weights[cell] = weights.get(cell, 0.0) + self.mix / len(best)
        return weights
