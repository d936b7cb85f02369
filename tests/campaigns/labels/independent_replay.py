"""A replay of plans that shares no code with the simulator's: NumPy alone, written from docs/problem.md."""

from typing import NamedTuple

import numpy as np

# Rows and columns of the moves U D L R W, and last of the padding after an agent's last move, which moves nobody.
STEPS = np.array([(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0), (0, 0)])
WAITS = 4


class Replay(NamedTuple):
    """The outcome of each plan: whether all agents reach their goals without a collision, bool [B], and what that took.

    makespan, sum_of_costs: of final arrivals, int [B]; waits: whether an agent waits before its own, bool [B]. They
    mean nothing if the plan is not valid.
    """

    valid: np.ndarray
    makespan: np.ndarray
    sum_of_costs: np.ndarray
    waits: np.ndarray


def replay_plans(holes: np.ndarray, starts: np.ndarray, goals: np.ndarray, moves: np.ndarray) -> Replay:
    """Plays the moves of B boards of K agents.

    Args:
        holes: bool [B, n, n].
        starts: int [B, K, 2].
        goals: int [B, K, 2].
        moves: int [B, K, T], 0 to 4, and -1 after the last one.
    """
    boards, agents, steps = moves.shape
    size = holes.shape[-1]
    known = (moves >= -1) & (moves < len(STEPS) - 1)
    moves = np.where(known, moves, -1)  # the others are illegal, and no index of STEPS
    valid: np.ndarray = np.all(known, axis=(1, 2))
    arrival = np.where((starts != goals).any(axis=-1), 1, 0)  # at the earliest; then whenever it was elsewhere last
    waited = np.zeros((boards, agents, steps), bool)
    here = np.asarray(starts)
    for step in range(steps):
        there = here + STEPS[moves[:, :, step]]
        inside = ((there >= 0) & (there < size)).all(axis=-1)
        row, column = np.clip(there, 0, size - 1).transpose(2, 0, 1)
        dry = ~holes[np.arange(boards)[:, None], row, column]
        valid &= (inside & dry).all(axis=1) & _keep_apart(here, there)
        arrival[(there != goals).any(axis=-1)] = step + 2
        waited[:, :, step] = moves[:, :, step] == WAITS
        here = there
    valid &= (here == goals).all(axis=(1, 2))
    before = np.arange(steps) < arrival[..., None]
    return Replay(valid, arrival.max(axis=1), arrival.sum(axis=1), np.any(waited & before, axis=(1, 2)))


def _keep_apart(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Tests that no two agents are in one cell after the step, and none have exchanged cells: bool [B]."""
    apart = np.ones(len(here), bool)
    for one in range(here.shape[1]):
        for other in range(one):
            meet = (there[:, one] == there[:, other]).all(axis=-1)
            swap = ((there[:, one] == here[:, other]) & (there[:, other] == here[:, one])).all(axis=-1)
            apart &= ~(meet | swap)
    return apart
