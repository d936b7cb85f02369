"""The reward of a proposal for the engineer that made it, and the advantages of a group of proposals."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from lakewright.core_jax.support import Count, Weight
from lakewright.engineer.design import Design
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.plugins import Power
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.windows import find_ends

ScoreDesign = Callable[[Design], float]  # what a design is worth beyond the current one
REFUSED = -1.0
NEAR = 0.02  # values all within this much of each other, or of a 50th of a wider range: near-identical designs
LEAST_SPREAD = 1e-3  # of rewards: less is noise, and teaches nothing


class ProposalReward(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the reward of a proposal."""

    scale: Weight = 50.0
    """Scale of the score; with 50 a lead of 0.02 in p (1 - p) counts as 1."""
    held_back: Weight = 0.1
    """Lost if the guard clipped the proposal."""
    identical: Weight = 0.5
    """Lost in proportion to the share of near-identical siblings."""
    gain: Weight = 0.0
    """Weight of the measured gain of the proposal that was trained on; ten points of valid answers count as 1."""
    returns: Weight = 0.0
    """Weight of that proposal's gain over several stages beyond the run's trend; ten points count as 1."""
    stages: Count = 3
    """The number of stages over which that gain is measured."""
    power: Power = 0.0
    """0: twice the data on a cell are worth twice as much. More than 1: data have diminishing returns, so data in
    proportion to the worth of cells to this power earn most, as with the teacher `difficulty`."""

    def __post_init__(self) -> None:
        if 0 < self.power <= 1:
            raise ValueError(f"power is {self.power:g}; choose 0, or more than 1 and at most 10")


class Earned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reward of a proposal and its parts; refused ones earn -1. siblings: the share that is near-identical."""

    reward: float
    score: float
    status: str
    siblings: float
    advantage: float


def reward_proposals(
    verdicts: Sequence[GuardVerdict], score: ScoreDesign, settings: ProposalReward, space: DesignSpace
) -> list[Earned]:
    """r = scale (s(design) - s(current)) - held_back [projected] - identical (share of near-identical siblings), or -1.

    Args:
        verdicts: the guard's verdicts, one for each proposal.
        score: gives s(design) - s(current).
        settings: the weights.
        space: the design space.

    The advantage is (r - mean) / standard deviation over the group, and 0 if all
    earn the same. (Absolute Zero 2505.03335 for the -1 of useless answers; R-Zero 2508.05004 for the siblings.)
    """
    status = np.array([verdict.status for verdict in verdicts])
    scores = [0.0 if verdict.status == "refused" else score(verdict.design) for verdict in verdicts]
    designs = [verdict.design for verdict in verdicts]
    alike = [sum(_is_near(design, other, space) for other in designs) - 1 for design in designs]  # without itself
    siblings = [count / max(1, len(designs) - 1) for count in alike]
    lost = settings.held_back * (status == "projected") + settings.identical * np.array(siblings)
    rewards = np.where(status == "refused", REFUSED, settings.scale * np.array(scores) - lost)
    spread = float(rewards.std())
    advantages = (rewards - rewards.mean()) / spread if spread > LEAST_SPREAD else np.zeros(len(rewards))
    columns = rewards.tolist(), scores, status.tolist(), siblings, advantages.tolist()
    return [Earned(*row) for row in zip(*columns, strict=True)]


def measure_return(rates: Sequence[float], stages: int) -> float | None:
    """The gain of the last `stages` stages beyond the mean of as many; None if there were not more.

    rates: the share of valid answers after each stage so far.
    """
    if len(rates) <= stages + 1:
        return None
    # A policy improves whatever is drawn, so a gain counts only beyond the run's usual pace.
    trend = (rates[-1] - rates[0]) / (len(rates) - 1)
    return rates[-1] - rates[-1 - stages] - stages * trend


def _is_near(one: Design, other: Design, space: DesignSpace) -> bool:
    return all(
        abs(end - there) <= NEAR * max(1.0, column.span)
        for stratum, row in one.strata.items()
        for column in space.columns
        for end, there in zip(find_ends(row, column), find_ends(other.strata[stratum], column), strict=True)
    )
