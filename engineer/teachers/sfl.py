"""SFL, sampling for learnability, on the level of designs: Rutherford et al. 2024, arXiv 2408.15099."""

from dataclasses import dataclass, field

from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import CellTeacher, Proposal
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace


@dataclass
class SflTeacher(CellTeacher):
    """Keeps the `top` share of the cells that were trained on by mean p (1 - p) of their groups, all alike, and mixes
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
