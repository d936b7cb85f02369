"""Assignment of the indices of a set to its shares, computed from the index alone.

The chairman assignment (R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32, 1980): among the
shares that may get their next item without being a whole item ahead, the one that would first be a whole item behind is
next. So in every prefix each share is within one item of its part.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np

PARTS = 1_000_000  # shares are read to six decimals, so the assignment repeats after at most about PARTS items


def assign_shares(shares: Sequence[float], first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The share of each of the indices first .. first + count - 1, and its rank within that share.

    Both int64 [count]. The shares are taken relative to their sum; shares, ranks and order depend on the index alone.
    """
    parts = _whole_parts(shares)
    cycle = sum(parts)
    # Powers of two, so that a stream of calls is computed again seldom.
    length = min(cycle, 1 << (first + count).bit_length())
    share, rank = _assign_cycle(parts, length)
    index = first + np.arange(count)
    place = index % cycle
    return share[place], index // cycle * np.array(parts)[share[place]] + rank[place]


def _whole_parts(shares: Sequence[float]) -> tuple[int, ...]:
    parts = [round(share * PARTS) for share in shares]
    return tuple(part // math.gcd(*parts) for part in parts)


@functools.lru_cache(maxsize=16)
def _assign_cycle(parts: tuple[int, ...], length: int) -> tuple[np.ndarray, np.ndarray]:
    """Share and rank of the first `length` indices; with all of a cycle each share has exactly its part."""
    cycle = sum(parts)
    share, rank = np.empty(length, np.int64), np.empty(length, np.int64)
    taken = [0] * len(parts)
    # From which index on a share may have its next item, and by which it is due.
    opens = [0 if part else length for part in parts]
    due = [-(-cycle // part) if part else cycle for part in parts]
    for index in range(length):
        chosen = min((i for i, opened in enumerate(opens) if opened <= index), key=due.__getitem__)
        share[index], rank[index] = chosen, taken[chosen]
        taken[chosen] += 1
        opens[chosen] = taken[chosen] * cycle // parts[chosen]
        due[chosen] = -(-(taken[chosen] + 1) * cycle // parts[chosen])
    return share, rank
