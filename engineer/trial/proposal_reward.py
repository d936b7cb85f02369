"""What a proposal earns the engineer that made it, and the advantages of a group of proposals."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig
from lakewright.engineer.delta import FIELDS
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.trial.settings import ProposalReward

Score = Callable[[EnvConfig], float]  # what a config is worth beyond the current one
REFUSED = -1.0
NEAR = 0.02  # ratios all within this much of each other: near-identical configs
LEAST_SPREAD = 1e-3  # of rewards: less is noise, and teaches nothing


class Earned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reward of a proposal and its parts; refused ones earn -1. siblings: the share that is near-identical."""

    reward: float
    score: float
    status: str
    siblings: float
    advantage: float


def earned_by(
    current: EnvConfig, verdicts: Sequence[GuardVerdict], score: Score, settings: ProposalReward
) -> list[Earned]:
    """r = scale (s(config) - s(current)) - held_back [projected] - identical (share of near-identical siblings), or -1.

    `score` is s(config) - s(current). The advantage is (r - mean) / standard deviation over the group, and 0 where all
    earn the same. (Absolute Zero 2505.03335 for the -1 of what cannot be used; R-Zero 2508.05004 for the siblings.)
    """
    scores = [0.0 if verdict.status == "refused" else score(verdict.config) for verdict in verdicts]
    siblings = [_siblings(verdicts, place) for place in range(len(verdicts))]
    rewards = np.array(
        [
            REFUSED
            if verdict.status == "refused"
            else settings.scale * value
            - settings.held_back * (verdict.status == "projected")
            - settings.identical * alike
            for verdict, value, alike in zip(verdicts, scores, siblings, strict=True)
        ]
    )
    spread = float(rewards.std())
    advantages = (rewards - rewards.mean()) / spread if spread > LEAST_SPREAD else np.zeros(len(rewards))
    columns = rewards.tolist(), scores, [verdict.status for verdict in verdicts], siblings, advantages.tolist()
    return [Earned(*row) for row in zip(*columns, strict=True)]


def _siblings(verdicts: Sequence[GuardVerdict], place: int) -> float:
    others = [verdict.config for other, verdict in enumerate(verdicts) if other != place]
    alike = sum(_near(verdicts[place].config, other) for other in others)
    return alike / len(others) if others else 0.0


def _near(one: EnvConfig, other: EnvConfig) -> bool:
    return all(
        abs(getattr(cell, field) - getattr(other.sizes[size], field)) <= NEAR
        for size, cell in one.sizes.items()
        for field in FIELDS
    )
