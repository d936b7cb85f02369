"""Configs of boards: sizes, shares, hole ratios, wait ratios, agents."""

import math
from collections.abc import Sequence

import msgspec

from lakewright.core_jax.errors import InputError

MIN_SIZE, MAX_SIZE = 3, 16
MAX_AGENTS = 8
MAX_TOKEN_SIZE = 10  # the largest board that tokens of policy and engineer can name
MAX_HOLE_RATIO = 0.5


class SizeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The boards of one map size."""

    data_ratio: float
    """Share of all boards that have this size, 0 to 1; the shares of all sizes sum to 1."""
    hole_ratio: float
    """Holes / (cells that are neither start nor goal), 0 to 0.5."""
    wait_ratio: float
    """Share of this size's boards on which every plan of optimal sum of costs waits, 0 to 1."""

    @property
    def wait_shares(self) -> tuple[tuple[bool, float], tuple[bool, float]]:
        """The shares of this size's boards that force a wait (True) and that do not (False)."""
        return (True, self.wait_ratio), (False, 1 - self.wait_ratio)


class EnvConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A distribution over boards: one `SizeConfig` for each map size, and the number of agents.

    Raises ValueError if a ratio is outside its range, the data ratios do not sum to one, or a size is too small.
    """

    sizes: dict[int, SizeConfig]
    """The boards of each map size, 3 to 16."""
    agents: int = 2
    """Agents on a board, 1 to 8."""

    def __post_init__(self) -> None:
        if not 1 <= self.agents <= MAX_AGENTS:
            raise ValueError(f"agents is {self.agents}; choose 1 to {MAX_AGENTS}")
        if not self.sizes:
            raise ValueError("sizes is empty; name at least one map size")
        for size, cell in self.sizes.items():
            _check_size(size, cell, self.agents)
        # Within a thousandth: ratios written by people and models have few digits, and the generator normalizes them.
        total = math.fsum(cell.data_ratio for cell in self.sizes.values())
        if abs(total - 1) > 1e-3:
            raise ValueError(f"the data_ratio of all sizes sum to {total:.4g}, not 1; divide each by {total:.4g}")

    @classmethod
    def single(cls, size: int, agents: int, hole_ratio: float, wait_ratio: float) -> "EnvConfig":
        """The config of one map size.

        Args:
            size: cells on a side.
            agents: number of agents.
            hole_ratio, wait_ratio: see `SizeConfig`.
        """
        return cls({size: SizeConfig(1.0, hole_ratio, wait_ratio)}, agents)

    def replace(self, sizes: dict[int, SizeConfig]) -> "EnvConfig":
        """This config with other sizes."""
        return msgspec.structs.replace(self, sizes=sizes)


def holes_of(size: int, agents: int, hole_ratio: float) -> int:
    """The number of holes on a board: round(hole_ratio x (size^2 - 2 agents)), halves up."""
    # Not `round`, which rounds halves to even: boards and files say "halves up", and counts must not depend on
    # parity.
    return math.floor(hole_ratio * (size * size - 2 * agents) + 0.5)


def hole_ratio_of(size: int, agents: int, holes: int) -> float:
    """The inverse of `holes_of`: holes / (cells that are neither start nor goal), 0 if no cell is left for holes."""
    return holes / max(size * size - 2 * agents, 1)


def holds(size: int, agents: int) -> bool:
    """Return True if a board of this size has cells for the starts and goals of `agents` agents."""
    return size * size >= 2 * agents


def with_teams(config: EnvConfig, teams: Sequence[int]) -> tuple[EnvConfig, ...]:
    """The config for each number of agents of `teams`; unchanged if not given.

    A size that does not hold a team is left out for it, and the data ratios of the others are divided by their sum.
    Raises InputError if that leaves a team without boards.
    """
    return tuple(_with_team(config, agents) for agents in teams) or (config,)


def _with_team(config: EnvConfig, agents: int) -> EnvConfig:
    sizes = {size: cell for size, cell in config.sizes.items() if holds(size, agents)}
    total = math.fsum(cell.data_ratio for cell in sizes.values())
    if not total:
        raise InputError(
            f"teams: {agents} agents do not fit on any size with a data_ratio, {', '.join(map(str, config.sizes))}; "
            "leave them out, or give a larger size a data_ratio"
        )
    if len(sizes) < len(config.sizes):
        sizes = {
            size: msgspec.structs.replace(cell, data_ratio=cell.data_ratio / total) for size, cell in sizes.items()
        }
    return EnvConfig(sizes, agents)


def _check_size(size: int, cell: SizeConfig, agents: int) -> None:
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(f"sizes.{size}: map size {size} is not supported; choose {MIN_SIZE} to {MAX_SIZE}")
    if not holds(size, agents):
        raise ValueError(
            f"sizes.{size}: {size * size} cells cannot hold the starts and goals of {agents} agents; "
            "use a larger size or fewer agents"
        )
    for name, value, top in (
        ("data_ratio", cell.data_ratio, 1.0),
        ("hole_ratio", cell.hole_ratio, MAX_HOLE_RATIO),
        ("wait_ratio", cell.wait_ratio, 1.0),
    ):
        if not 0 <= value <= top:
            raise ValueError(f"sizes.{size}.{name} is {value:g}; choose 0 to {top:g}")
