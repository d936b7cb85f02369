"""E2H, from easy to hard over the map sizes: Parashar et al. 2025, arXiv 2506.06632."""

import math
from typing import Annotated, Literal

import msgspec

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.support import Weight
from lakewright.engineer.delta import normalised
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Stateless, moved_to
from lakewright.engineer.random_generators import Key

REASON = "the schedule from small to large boards"
Sigma = Annotated[float, msgspec.Meta(ge=0.05)]  # less, and all bells may be 0


class EasyToHardTeacher(Stateless):
    """Data ratios by a schedule over the K sizes, ranked i = 0 .. K - 1; hole and wait ratios stay.

    With x = t / T, from 0 at the first stage to 1 at the last, and the floor m = 2 / (K (K + 1)):

    cosine: a = (1 + cos(pi x)) / 2 and p_i ~ max(m, m (a (K - i) + (1 - a) (i + 1))).
    gaussian: mu = x^exponent (K - 1), q_i ~ exp(-(i - mu)^2 / (2 sigma^2)) and p_i = m + (1 - K m) q_i.
    """

    def __init__(self, schedule: Literal["cosine", "gaussian"], exponent: Weight = 0.5, sigma: Sigma = 0.5) -> None:
        self.schedule = schedule
        self.exponent = exponent
        self.sigma = sigma

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The shares of the stage to come; no chance in it."""
        following, last = (evidence.round or 0) + 1, max((evidence.rounds or 1) - 1, 1)
        shares = self.shares(min(following / last, 1.0), len(config.sizes))
        ranks = {size: rank for rank, size in enumerate(sorted(config.sizes))}
        sizes = {
            size: SizeConfig(shares[ranks[size]], cell.hole_ratio, cell.wait_ratio)
            for size, cell in config.sizes.items()
        }
        return moved_to(config, normalised(sizes), REASON)

    def shares(self, progress: float, count: int) -> list[float]:
        """The share of each of `count` ranks, at `progress` x."""
        floor = 2 / (count * (count + 1))
        if self.schedule == "cosine":
            easy = (1 + math.cos(math.pi * progress)) / 2
            weights = [max(floor, floor * (easy * (count - i) + (1 - easy) * (i + 1))) for i in range(count)]
            return [weight / math.fsum(weights) for weight in weights]
        mean = progress**self.exponent * (count - 1)
        bells = [math.exp(-((i - mean) ** 2) / (2 * self.sigma**2)) for i in range(count)]
        return [floor + (1 - count * floor) * bell / math.fsum(bells) for bell in bells]
