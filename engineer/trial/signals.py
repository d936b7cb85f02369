"""What configs are compared by before one is trained on: the signal that the policy gets on their boards.

Boards alike in size, agents, holes and forced wait form a stratum. Configs share strata, so each stratum is rolled out
once, and the signal of a config is the mean over its strata by their shares of its boards: configs that differ in
shares alone differ by no chance of sampling.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from lakewright.core_jax.config import EnvConfig, holes_of, with_teams
from lakewright.core_jax.generator import Stratum
from lakewright.engineer.difficulty import Objective
from lakewright.engineer.trial.settings import TrialSettings

FEWEST = 2  # boards of a stratum, however small its share


class Signal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a policy got on some boards, means over the boards.

    valid: p, the share of valid plans of a board. informative: whether some of its plans are valid and some are not.
    variance: p (1 - p), estimated without bias.
    """

    valid: float
    informative: float
    variance: float


class Tried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signal of a config: on all its boards, and per map size. objective: what its boards are worth."""

    config: EnvConfig
    signal: Signal
    sizes: dict[int, Signal]
    objective: Objective = "learnability"

    @property
    def score(self) -> float:
        """What configs are compared by: the mean regret, or the mean variance, half of how often two plans differ."""
        return 1 - self.signal.valid if self.objective == "regret" else self.signal.variance


def strata_of(config: EnvConfig, teams: Sequence[int] = ()) -> dict[Stratum, float]:
    """The share of each stratum of a config's boards, for `teams` in turn; those of no board are left out."""
    shares: dict[Stratum, float] = {}
    parts = with_teams(config, teams)
    for part in parts:
        for size, cell in part.sizes.items():
            holes = holes_of(size, part.agents, cell.hole_ratio)
            for wait, share in cell.wait_shares:
                if cell.data_ratio * share > 0:
                    shares[Stratum(size, part.agents, holes, wait)] = cell.data_ratio * share / len(parts)
    return shares


def boards_to_try(
    configs: Sequence[EnvConfig], settings: TrialSettings, teams: Sequence[int] = ()
) -> dict[Stratum, int]:
    """How many boards of each stratum to roll out: the most that any config asks for."""
    wanted: dict[Stratum, float] = {}
    for config in configs:
        for stratum, share in strata_of(config, teams).items():
            wanted[stratum] = max(share, wanted.get(stratum, 0.0))
    return {stratum: max(FEWEST, math.ceil(settings.boards * share)) for stratum, share in wanted.items()}


class StratumTrial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many of the `plans` sampled on each board of a stratum are valid."""

    stratum: Stratum
    plans: int
    valid: list[int]

    def variances(self) -> list[float]:
        """p (1 - p) of each board by x (G - x) / (G (G - 1)), the share of ordered pairs of plans of which only the
        first is valid: the learnability of SFL (arXiv 2408.15099) without the bias of small groups.
        """
        return [x * (self.plans - x) / (self.plans * (self.plans - 1)) for x in self.valid]

    def values(self, objective: Objective) -> list[float]:
        """What each board is worth: its variance, or the share of its plans that are not valid."""
        return [1 - x / self.plans for x in self.valid] if objective == "regret" else self.variances()

    def signal(self) -> Signal:
        """The means over the boards."""
        return Signal(
            valid=sum(self.valid) / (self.plans * len(self.valid)),
            informative=sum(0 < x < self.plans for x in self.valid) / len(self.valid),
            variance=math.fsum(self.variances()) / len(self.valid),
        )


def tried(
    config: EnvConfig,
    signals: Mapping[Stratum, Signal],
    teams: Sequence[int] = (),
    objective: Objective = "learnability",
) -> Tried:
    """The signal of a config from those of its strata."""
    shares = strata_of(config, teams)
    sizes = {size: {s: share for s, share in shares.items() if s.size == size} for size in config.sizes}
    by_size = {size: _mean(part, signals) for size, part in sizes.items() if part}
    return Tried(config, _mean(shares, signals), by_size, objective)


def _mean(shares: Mapping[Stratum, float], signals: Mapping[Stratum, Signal]) -> Signal:
    total = math.fsum(shares.values())
    fields = Signal.__struct_fields__
    return Signal(
        *(math.fsum(share * getattr(signals[s], field) for s, share in shares.items()) / total for field in fields)
    )
