"""SFL, sampling for learnability, on the level of designs: Rutherford et al. 2024, arXiv 2408.15099."""

from typing import Any

import msgspec

from lakewright.core_jax.support import Share, convert
from lakewright.engineer.delta import weigh_cells
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import Proposal, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

REASON = "the cells of the largest p (1 - p)"


class SflTeacher:
    """Keeps the `top` share of the cells that were trained on by mean p (1 - p) of their groups, all alike, and mixes
    them with the first design: `mix` of the problems from these cells, the rest from that design.

    The paper keeps single levels; that is the sampler of the same name.
    """

    def __init__(self, top: Share = 0.5, mix: Share = 0.5) -> None:
        self.top = top
        self.mix = mix
        self.first: Design | None = None

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The mixture. Deterministic. Without rollouts, no edits."""
        self.first = self.first or design
        if not evidence.groups:
            return propose_nothing()
        order = sorted(evidence.groups, key=lambda cell: -cell.groups.learnability)
        best = [seen.cell for seen in order[: max(1, round(self.top * len(order)))]]
        weights = {cell: (1 - self.mix) * share for cell, share in space.cells(self.first).items()}
        for cell in best:
            weights[cell] = weights.get(cell, 0.0) + self.mix / len(best)
        return propose_rows(design, weigh_cells(weights, design, space), REASON, space)

    def state_dict(self) -> dict[str, Any]:
        """The first design."""
        return {"first": msgspec.to_builtins(self.first, str_keys=True)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The first design."""
        self.first = None if state["first"] is None else convert(state["first"], Design, "teacher state: first")
