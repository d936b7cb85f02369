"""The features of a cell: size, hole ratio, forced wait and number of agents, and their interactions."""

from collections.abc import Sequence

import numpy as np

from lakewright.core_jax.config import MAX_HOLE_RATIO, MAX_SIZE, MIN_SIZE
from lakewright.engineer.curriculum_cells import Cell

MIDDLE, HALF = 6.5, 3.5  # sizes 3 to 10 become -1 to 1
WIDE = 3.0  # how many times wider the prior of the main effects is than that of interactions
SIZES = np.arange(MIN_SIZE, MAX_SIZE + 1)


def features(cells: Sequence[Cell], agents: Sequence[int], by_size: float = 0.0) -> np.ndarray:
    """float [N, 10] of cells whose boards have so many agents; each weight has the prior N(0, 1).

    With s the size, h the hole ratio, f the forced wait and a the agents, each from about -1 to 1: 1, s, h, f and a,
    times WIDE, and s^2, h^2, s h, s f, h f. With `by_size`, float [N, 10 + 2 S]: for each of the S sizes that boards
    may have, [size is it], then [size is it] f, times `by_size`, which is the prior's deviation of these effects.
    """
    sizes = np.array([cell.size for cell in cells], int)
    size = (sizes - MIDDLE) / HALF
    hole = 2 * np.array([cell.hole_ratio for cell in cells], float) / MAX_HOLE_RATIO - 1
    forced = 2 * np.array([cell.forced for cell in cells], float) - 1
    team = (np.array(agents, float) - 2) / 3
    main = WIDE * np.stack([np.ones_like(size), size, hole, forced, team])
    pairs = np.stack([size**2, hole**2, size * hole, size * forced, hole * forced])
    found = np.concatenate([main, pairs]).T
    if not by_size:
        return found
    own = by_size * (sizes[:, None] == SIZES)
    return np.concatenate([found, own, own * forced[:, None]], axis=1)
