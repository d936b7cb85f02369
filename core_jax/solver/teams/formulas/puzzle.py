"""One board in the form of a formula: cells numbered row by row."""

import dataclasses
from typing import Annotated

import numba
import numpy as np

from lakewright.core_jax.solver.teams.host_search.workspace import Numbers
from lakewright.core_jax.support.compiled_code import compiled

NO_PATH = 1 << 14  # the distance of cells without a path to the goal
Steps = Annotated[np.ndarray, numba.int64[:, ::1]]


@dataclasses.dataclass(frozen=True)
class Puzzle:
    """One board, and what is known to bound its plans.

    steps: int64 [N, 5], the cell that each move leads to, -1 for nowhere. starts, goals: int64 [K]. distance: int64
    [K, N] to the own goal, NO_PATH without a path. excess: int [P], the least that each two agents pay together beyond
    their single distances, pairs in the order of `itertools.combinations`. others: int64 [K], likewise what
    the team without each agent pays.
    """

    steps: np.ndarray
    starts: np.ndarray
    goals: np.ndarray
    distance: np.ndarray
    excess: np.ndarray
    others: np.ndarray

    @property
    def alone(self) -> np.ndarray:
        """The single distances from the starts, int64 [K]."""
        return self.distance[np.arange(len(self.starts)), self.starts]


def make_puzzle(
    steps: np.ndarray, starts: np.ndarray, goals: np.ndarray, excess: np.ndarray, others: np.ndarray
) -> Puzzle:
    """Measures the distances of a board.

    Args: steps, starts, goals, excess, others: the fields of `Puzzle`.
    """
    steps, starts, goals, others = (np.ascontiguousarray(field, np.int64) for field in (steps, starts, goals, others))
    distance = np.full((len(starts), len(steps)), NO_PATH, np.int64)
    for row, goal in zip(distance, goals, strict=True):
        spread_distance(steps, int(goal), row)
    return Puzzle(steps, starts, goals, distance, np.asarray(excess), others)


@compiled
def spread_distance(steps: Steps, goal: int, distance: Numbers) -> None:
    """Writes the distance of each cell that has a path to the goal."""
    queue = np.empty(len(steps), np.int64)
    queue[0] = goal
    distance[goal] = 0
    done, known = 0, 1
    while done < known:
        cell = queue[done]
        done += 1
        for move in range(4):
            there = steps[cell, move]
            if there >= 0 and distance[there] == NO_PATH:
                distance[there] = distance[cell] + 1
                queue[known] = there
                known += 1
