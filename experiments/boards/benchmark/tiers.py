"""The tiers of the benchmark: the published one, and a harder one."""

import dataclasses

import msgspec


class Tier(msgspec.Struct, frozen=True):
    """A tier: `boards` boards for each pair of agents and size, each hole ratio and each wait ratio."""

    teams: tuple[tuple[int, int], ...]
    hole_ratios: tuple[float, ...]
    wait_ratios: tuple[float, ...]
    boards: int

    def cells(self) -> list["BenchmarkCell"]:
        """Every cell, in the order of the file."""
        return [BenchmarkCell(agents, size, ratio) for agents, size in self.teams for ratio in self.hole_ratios]

    @property
    def count(self) -> int:
        """The number of boards."""
        return len(self.cells()) * len(self.wait_ratios) * self.boards


PAPER = Tier(
    teams=tuple((agents, size) for agents in (3, 4, 5) for size in range(max(3, agents), 11)),
    hole_ratios=(0.1, 0.2, 0.3, 0.4, 0.5),
    wait_ratios=(0.25, 0.5, 0.75),
    boards=10,
)
# Larger boards, then larger teams.
HARD = Tier(
    teams=((3, 12), (3, 14), (3, 16), (4, 12), (4, 14), (4, 16), (5, 12), (6, 8), (6, 10), (7, 8), (7, 10), (8, 8)),
    hole_ratios=(0.1, 0.3, 0.5),
    wait_ratios=(0.25, 0.75),
    boards=10,
)
TIERS = {"paper": PAPER, "hard": HARD}


@dataclasses.dataclass(frozen=True)
class BenchmarkCell:
    """The boards of one number of agents, size and hole ratio, numbered through all wait ratios."""

    agents: int
    size: int
    hole_ratio: float

    def __str__(self) -> str:
        return f"{self.agents}ag_{self.size}x{self.size}_hr{self.hole_ratio:g}"
