"""How proposals are tried, and what they earn the engineer that made them."""

import msgspec

from lakewright.core_jax.support import Count, Weight
from lakewright.engineer.options import Power


class TrialSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and how proposals are tried before one is trained on."""

    enabled: bool = True
    """Whether proposals are tried by rollouts before training."""
    boards: Count = 200
    """About how many boards are rolled out for each config."""
    samples: int = 4
    """Plans sampled on each board, at least 2."""
    shortlist: Count = 2
    """How many proposals are tried against the current config, those of the largest expected worth."""
    prior: bool = True
    """Whether the difficulty model has a say in the choice, besides what was measured."""

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ValueError(f"samples is {self.samples}; choose at least 2, one plan shows no variance")


class ProposalReward(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a proposal earns."""

    scale: Weight = 50.0
    """Scale of the score; with 50 a lead of 0.02 in p (1 - p) counts as 1."""
    held_back: Weight = 0.1
    """Lost where the guard held something back."""
    identical: Weight = 0.5
    """Lost in proportion to the share of near-identical siblings."""
    gain: Weight = 0.0
    """Weight of the measured gain of the proposal that was trained on; ten points of valid plans count as 1."""
    power: Power = 0.0
    """0: twice the data on a cell are worth twice as much; more than 1: data have diminishing returns, so that most is
    earned by data in proportion to what cells are worth to this power, as the teacher `difficulty` shares them out."""

    def __post_init__(self) -> None:
        if 0 < self.power <= 1:
            raise ValueError(f"power is {self.power:g}; choose 0, or more than 1 and at most 10")
