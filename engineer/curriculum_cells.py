"""Cells of boards: map size x hole bin x forced wait; and the config that weights of cells mean."""

from collections.abc import Mapping
from typing import NamedTuple

from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig, SizeConfig
from lakewright.engineer.delta import normalised

HOLE_BINS = 5  # of equal width, from 0 to MAX_HOLE_RATIO
_WIDTH = MAX_HOLE_RATIO / HOLE_BINS


class Cell(NamedTuple):
    """Boards of one size and hole ratio that force a wait, or that do not."""

    size: int
    hole_ratio: float
    forced: bool

    def __str__(self) -> str:
        return f"{self.size} {self.hole_ratio:.6g} {int(self.forced)}"

    @classmethod
    def named(cls, name: str) -> "Cell":
        """The cell of that `str`."""
        size, hole_ratio, forced = name.split()
        return cls(int(size), float(hole_ratio), forced == "1")


def grid(config: EnvConfig) -> list[Cell]:
    """The cells of a config's sizes, ascending; the hole ratio of each is its bin's centre."""
    strata = (False, True) if config.agents > 1 else (False,)
    return [
        Cell(size, centre(bin), wait) for size in sorted(config.sizes) for bin in range(HOLE_BINS) for wait in strata
    ]


def centre(bin: int) -> float:
    """The middle of a hole bin."""
    return round((bin + 0.5) * _WIDTH, 6)


def binned(cell: Cell) -> Cell:
    """The cell of the grid that holds a cell."""
    return cell._replace(hole_ratio=centre(min(HOLE_BINS - 1, int(cell.hole_ratio / _WIDTH + 1e-9))))


def difficulty(cell: Cell, config: EnvConfig) -> float:
    """How hard a cell's boards are by rank, 0 .. 1: the mean of size rank, hole ratio and forced wait, each 0 .. 1."""
    sizes = sorted(config.sizes)
    parts = [cell.hole_ratio / MAX_HOLE_RATIO, float(cell.forced)]
    if len(sizes) > 1:
        parts.append(sizes.index(cell.size) / (len(sizes) - 1))
    return sum(parts) / len(parts)


def weights_of(config: EnvConfig) -> dict[Cell, float]:
    """The shares of the cells that a config draws from."""
    cells = {}
    for size, part in config.sizes.items():
        for forced, share in part.wait_shares:
            cells[Cell(size, part.hole_ratio, forced)] = part.data_ratio * share
    return {cell: share for cell, share in cells.items() if share > 0}


def config_of(config: EnvConfig, weights: Mapping[Cell, float]) -> dict[int, SizeConfig]:
    """The sizes that weights of cells mean: data ratios are their shares of the whole; hole and wait ratio the means of
    their cells. A size without weight gets no data and keeps the rest.
    """
    sizes = {}
    for size, old in config.sizes.items():
        mine = {cell: weight for cell, weight in weights.items() if cell.size == size}
        if total := sum(mine.values()):
            hole = sum(cell.hole_ratio * weight for cell, weight in mine.items()) / total
            wait = sum(weight for cell, weight in mine.items() if cell.forced) / total
            sizes[size] = SizeConfig(total, hole, wait)
        else:
            sizes[size] = SizeConfig(0.0, old.hole_ratio, old.wait_ratio)
    return normalised(sizes)
