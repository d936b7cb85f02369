"""SFL, sampling for learnability, on the level of configs: Rutherford et al. 2024, arXiv 2408.15099."""

from typing import Any

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.support import Share, convert
from lakewright.engineer.curriculum_cells import Cell, config_of, weights_of
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, decided, moved_to
from lakewright.engineer.random_generators import Key

REASON = "the cells of the largest p (1 - p)"


class SflTeacher:
    """Keeps the `top` share of the cells that were trained on by mean p (1 - p) of their groups, all alike, and mixes
    them with the first config: `mix` of the boards from what was kept, the rest from that config.

    The paper keeps single levels; that is the sampler of the same name.
    """

    def __init__(self, top: Share = 0.5, mix: Share = 0.5) -> None:
        self.top = top
        self.mix = mix
        self.first: EnvConfig | None = None

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The mixture; no chance in it. Without rollouts, no edits."""
        self.first = self.first or config
        if not evidence.groups:
            return decided(ConfigDelta({}))
        order = sorted(evidence.groups, key=lambda cell: -cell.groups.learnability)
        kept = [Cell(seen.size, seen.hole_ratio, seen.forced) for seen in order[: max(1, round(self.top * len(order)))]]
        weights = {cell: (1 - self.mix) * share for cell, share in weights_of(self.first).items()}
        for cell in kept:
            weights[cell] = weights.get(cell, 0.0) + self.mix / len(kept)
        return moved_to(config, config_of(config, weights), REASON)

    def state_dict(self) -> dict[str, Any]:
        """The first config."""
        return {"first": msgspec.to_builtins(self.first, str_keys=True)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The first config."""
        self.first = None if state["first"] is None else convert(state["first"], EnvConfig, "teacher state: first")
