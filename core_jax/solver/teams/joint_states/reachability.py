"""Exhaustive proofs of whether agents can reach their goals at all, for one board at a time.

Far fewer moves than all joint ones settle this. In a joint move each agent enters a cell that was free, or one that
another leaves: so the moves form paths and cycles. Those of a path can be made one after the other, by single agents
that enter free cells, the foremost first. A cycle moves at once; on a grid it has four agents or more. NumPy, on the
host.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from lakewright.core_jax.types import DELTAS


def list_steps(holes: np.ndarray) -> np.ndarray:
    """The cell that each of `MOVES` leads to, cells numbered row by row: int [N, 5], -1 where it leads nowhere."""
    size = len(holes)
    number = np.where(holes, -1, np.arange(size * size).reshape(size, size))
    padded = np.pad(number, 1, constant_values=-1)
    around = [padded[1 + row : 1 + row + size, 1 + column : 1 + column + size] for row, column in DELTAS]
    return np.where(holes[..., None], -1, np.stack(around, axis=-1)).reshape(size * size, len(DELTAS))


def find_component(steps: np.ndarray, cell: int) -> np.ndarray:
    """The cells that can be reached from `cell`, int [*], in order."""
    inside = np.zeros(len(steps), bool)
    fresh = np.array([cell])
    while len(fresh):
        inside[fresh] = True
        around = steps[fresh]
        fresh = np.unique(around[(around >= 0) & ~inside[around]])
    return np.flatnonzero(inside)


def find_whether_solvable(steps: np.ndarray, starts: np.ndarray, goals: np.ndarray, states: int) -> bool | None:
    """Return True if there is a plan, False if there is none; None if that would take more joint states than allowed.

    Args: steps, as from `list_steps`; starts, goals, int [K], cells; states, joint states at most.
    """
    groups = defaultdict(list)
    for agent, start in enumerate(starts):
        groups[int(find_component(steps, start)[0])].append(agent)
    answers = [_can_reach_goals(steps, starts[group], goals[group], states) for group in groups.values()]
    return False if False in answers else None if None in answers else True


def _can_reach_goals(steps: np.ndarray, starts: np.ndarray, goals: np.ndarray, states: int) -> bool | None:
    """`find_whether_solvable`, for agents of one component.

    Args: steps, starts, goals, states as there.
    """
    home = find_component(steps, starts[0])
    shape = (len(home),) * len(starts)
    if not np.isin(goals, home).all():
        return False
    if math.prod(shape) > states:
        return None
    rank = np.zeros(len(steps), int)
    rank[home] = np.arange(len(home))
    seen = np.zeros(math.prod(shape), bool)
    fresh, end = (np.ravel_multi_index(tuple(rank[cells]), shape).reshape(1) for cells in (starts, goals))
    while len(fresh):
        seen[fresh] = True
        if seen[end]:
            return True
        cells = home[np.stack(np.unravel_index(fresh, shape))]
        after = [np.ravel_multi_index(tuple(rank[moved]), shape) for moved in _make_moves(steps, cells)]
        fresh = np.unique(np.concatenate([some[~seen[some]] for some in after]))
    return False


def _make_moves(steps: np.ndarray, cells: np.ndarray) -> Iterator[np.ndarray]:
    """The states int [K, *] that single agents, then cycles of agents, lead to from `cells`, int [K, B]."""
    for agent, by in itertools.product(range(len(cells)), range(4)):
        target = steps[cells[agent], by]
        moved = cells[:, (target >= 0) & (target != cells).all(axis=0)]
        moved[agent] = steps[moved[agent], by]
        yield moved
    for cycle in _list_cycles(len(cells)):
        ahead = np.roll(cycle, -1)
        rotating = (steps[cells[cycle], :4] == cells[ahead][..., None]).any(axis=-1).all(axis=0)
        moved = cells[:, rotating]
        moved[cycle] = moved[ahead]
        yield moved


def _list_cycles(agents: int) -> Iterator[np.ndarray]:
    """Every order in which some of the agents can follow each other around: int [4], [6] and so on."""
    for length in range(4, agents + 1, 2):
        for first, *others in itertools.combinations(range(agents), length):
            for order in itertools.permutations(others):
                yield np.array((first, *order))
