"""E2H, from easy to hard over the strata: Parashar et al. 2025, arXiv 2506.06632."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Weight
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Stateful, propose_rows
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace, normalize_rows

Sigma = Annotated[float, msgspec.Meta(ge=0.05)]  # less, and all bells may be 0


@dataclass
class EasyToHardTeacher(Stateful):
    """Shares by a schedule over the K strata, ranked i = 0 .. K - 1; knobs stay.

    With x = t / T, from 0 at the first stage to 1 at the last, and the floor m = 2 / (K (K + 1)):

    cosine: a = (1 + cos(pi x)) / 2 and p_i ~ max(m, m (a (K - i) + (1 - a) (i + 1))).
    gaussian: mu = x^exponent (K - 1), q_i ~ exp(-(i - mu)^2 / (2 sigma^2)) and p_i = m + (1 - K m) q_i.
    """

    schedule: ClassVar[Literal["cosine", "gaussian"]]
    exponent: Weight = 0.5
    sigma: Sigma = 0.5

    def check_space(self, space: DesignSpace) -> None:
        """Raises InputError if the strata of a space have no order."""
        if not space.ranked:
            raise InputError(f"teacher: e2h_{self.schedule} needs strata in order; choose a teacher that needs none")

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The shares of the stage to come. Deterministic."""
        following, last = (evidence.round or 0) + 1, max((evidence.rounds or 1) - 1, 1)
        shares = self.schedule_shares(min(following / last, 1.0), len(design.strata))
        ranked = dict(zip(space.sort_strata(design.strata), shares, strict=True))
        rows = {stratum: {**row, space.share.name: ranked[stratum]} for stratum, row in design.strata.items()}
        reason = f"the schedule from small to large {space.words.problems}"
        return propose_rows(design, normalize_rows(rows, space), reason, space)

    def schedule_shares(self, progress: float, count: int) -> list[float]:
        """The share of each of `count` ranks, at `progress` x."""
        floor = 2 / (count * (count + 1))
        if self.schedule == "cosine":
            easy = (1 + math.cos(math.pi * progress)) / 2
            weights = [max(floor, floor * (easy * (count - i) + (1 - easy) * (i + 1))) for i in range(count)]
            return [weight / math.fsum(weights) for weight in weights]
        mean = progress**self.exponent * (count - 1)
        bells = [math.exp(-((i - mean) ** 2) / (2 * self.sigma**2)) for i in range(count)]
        return [floor + (1 - count * floor) * bell / math.fsum(bells) for bell in bells]


class CosineTeacher(EasyToHardTeacher):
    """The cosine schedule."""

    schedule = "cosine"


class GaussianTeacher(EasyToHardTeacher):
    """The Gaussian schedule."""

    schedule = "gaussian"
