"""The pairs of a team's agents."""

import itertools

import numpy as np


def pairs_of(agents: int) -> np.ndarray:
    """Every pair of agents: int [P, 2]."""
    return np.array(list(itertools.combinations(range(agents), 2)), int).reshape(-1, 2)
