"""The signals by which designs are compared before training: what the policy gets on their problems.

Designs share cells, so each cell is rolled out once, and the signal of a design is the mean over its cells by their
shares of its problems: designs that differ in shares alone differ by no chance of sampling. Cells are as in
`Environment.mix`, in which equal problems are of equal cells.
"""

import math
from collections.abc import Iterable, Mapping

import msgspec

from lakewright.core_jax.support import Count, Share
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design, by_stratum
from lakewright.engineer.difficulty.model import Objective
from lakewright.engineer.difficulty.worth import Mix

FEWEST = 2  # problems of a cell, however small its share


class TrialSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the trial of proposals, before one is trained on."""

    enabled: bool = True
    """Whether proposals are tried by rollouts before training."""
    boards: Count = 200
    """About how many problems are rolled out for each design."""
    samples: int = 4
    """Answers sampled to each problem, at least 2."""
    shortlist: Count = 2
    """How many proposals are tried against the current design, in order of expected worth."""
    prior: bool = True
    """Whether the choice uses the difficulty model's forecast in addition to the measurement."""
    share: Share = 0.1
    """The most answers of a trial, as a share of the answers trained on since the last redesign; a trial that may take
    more is not held. 0: any number, also before the first stage."""

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ValueError(f"samples is {self.samples}; choose at least 2, because one answer shows no variance")
        if not self.enabled:  # so that settings are equal to those of records that are older than the share
            msgspec.structs.force_setattr(self, "share", 0.0)


class Signal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signal of some problems for a policy, means over the problems.

    valid: p, the share of valid answers to a problem. informative: whether some of its answers are valid and some are
    not. variance: p (1 - p), estimated without bias.
    """

    valid: float
    informative: float
    variance: float


class Tried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signal of a design: on all its problems, and by stratum. objective: what its problems are worth."""

    design: Design
    signal: Signal
    strata: dict[int | str, Signal]
    objective: Objective = "learnability"

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "strata", by_stratum(self.strata))

    @property
    def score(self) -> float:
        """The score of a design: the mean regret, or the mean variance, half of how often two answers differ."""
        return 1 - self.signal.valid if self.objective == "regret" else self.signal.variance


class CellTrial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of valid answers among the `answers` sampled to each problem of a cell."""

    cell: Cell
    answers: int
    valid: list[int]

    def variances(self) -> list[float]:
        """p (1 - p) of each problem by x (G - x) / (G (G - 1)), the share of ordered pairs of answers of which only the
        first is valid: the learnability of SFL (arXiv 2408.15099) without the bias of small groups.
        """
        return [x * (self.answers - x) / (self.answers * (self.answers - 1)) for x in self.valid]

    def values(self, objective: Objective) -> list[float]:
        """The worth of each problem: its variance, or the share of its answers that are not valid."""
        return [1 - x / self.answers for x in self.valid] if objective == "regret" else self.variances()

    def signal(self) -> Signal:
        """The means over the problems."""
        return Signal(
            valid=sum(self.valid) / (self.answers * len(self.valid)),
            informative=sum(0 < x < self.answers for x in self.valid) / len(self.valid),
            variance=math.fsum(self.variances()) / len(self.valid),
        )


def problems_to_try(mixes: Iterable[Mix], settings: TrialSettings) -> dict[Cell, int]:
    """The number of problems of each cell to roll out: the most that any design asks for, by their mixes of cells."""
    wanted: dict[Cell, int] = {}
    for cell, share in (part for mix in mixes for part in mix.items()):
        # The most of all designs, not the sum: designs share the problems of a cell, which is what makes a trial
        # cheap and the comparison paired.
        wanted[cell] = max(wanted.get(cell, FEWEST), math.ceil(settings.boards * share))
    return wanted


def sum_up_trial(
    design: Design, mix: Mix, signals: Mapping[Cell, Signal], objective: Objective = "learnability"
) -> Tried:
    """The signal of a design from its cells' signals.

    Args:
        design, mix: the design and its cells.
        signals: the signals by cell.
        objective: says what problems are worth.
    """
    # A stratum without a share has no cells, and no signal either: it is left out instead of counting as zero.
    strata = {one: {cell: share for cell, share in mix.items() if cell.stratum == one} for one in design.strata}
    found = {stratum: _average_signals(part, signals) for stratum, part in strata.items() if part}
    return Tried(design, _average_signals(mix, signals), found, objective)


def _average_signals(mix: Mix, signals: Mapping[Cell, Signal]) -> Signal:
    total = math.fsum(mix.values())

    def average(field: str) -> float:
        return math.fsum(share * getattr(signals[cell], field) for cell, share in mix.items()) / total

    return Signal(*map(average, Signal.__struct_fields__))
