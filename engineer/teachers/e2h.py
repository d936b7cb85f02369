"""E2H, from easy to hard over the strata: Parashar et al. 2025, arXiv 2506.06632."""

import abc
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


class EasyToHardTeacher(Stateful, abc.ABC):
    """Shares by a schedule over the K strata, ranked i = 0 .. K - 1; knobs stay.

    x = t / T goes from 0 at the first stage to 1 at the last, and the floor is m = 2 / (K (K + 1)).
    """

    schedule: ClassVar[Literal["cosine", "gaussian"]]
    follows_schedule: ClassVar[bool] = True

    def check_space(self, space: DesignSpace) -> None:
        """Raises InputError if the strata of a space have no order."""
        if not space.ranked:
            raise InputError(f"teacher: e2h_{self.schedule} needs strata in order; choose a teacher that does not")

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The shares of the stage to come. Deterministic."""
        following, last = (evidence.round or 0) + 1, max((evidence.rounds or 1) - 1, 1)
        shares = self.schedule_shares(min(following / last, 1.0), len(design.strata))
        ranked = dict(zip(space.sort_strata(design.strata), shares, strict=True))
        rows = {stratum: {**row, space.share.name: ranked[stratum]} for stratum, row in design.strata.items()}
        reason = f"the schedule from small to large {space.words.problems}"
        return propose_rows(design, normalize_rows(rows, space), reason, space)

    @abc.abstractmethod
    def schedule_shares(self, progress: float, count: int) -> list[float]:
        """The share of each of `count` ranks, at `progress` x."""


@dataclass
class CosineTeacher(EasyToHardTeacher):
    """a = (1 + cos(pi x)) / 2 and p_i ~ max(m, m (a (K - i) + (1 - a) (i + 1)))."""

    schedule = "cosine"

    def schedule_shares(self, progress: float, count: int) -> list[float]:
        """See `EasyToHardTeacher`."""
        floor, easy = _find_floor(count), (1 + math.cos(math.pi * progress)) / 2
        weights = [max(floor, floor * (easy * (count - i) + (1 - easy) * (i + 1))) for i in range(count)]
        return [weight / math.fsum(weights) for weight in weights]


@dataclass
class GaussianTeacher(EasyToHardTeacher):
    """mu = x^exponent (K - 1), q_i ~ exp(-(i - mu)^2 / (2 sigma^2)) and p_i = m + (1 - K m) q_i."""

    schedule = "gaussian"
    exponent: Weight = 0.5
    sigma: Sigma = 0.5

    def schedule_shares(self, progress: float, count: int) -> list[float]:
        """See `EasyToHardTeacher`."""
        floor, mean = _find_floor(count), progress**self.exponent * (count - 1)
        bells = [math.exp(-((i - mean) ** 2) / (2 * self.sigma**2)) for i in range(count)]
        return [floor + (1 - count * floor) * bell / math.fsum(bells) for bell in bells]


def _find_floor(count: int) -> float:
    return 2 / (count * (count + 1))
