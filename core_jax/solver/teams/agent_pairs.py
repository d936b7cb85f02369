"""The pairs of a team's agents, and rows of batches."""

import itertools
from typing import TypeVar

import jax
import numpy as np

T = TypeVar("T")


def pairs_of(agents: int) -> np.ndarray:
    """Every pair of agents: int [P, 2]."""
    return np.array(list(itertools.combinations(range(agents), 2)), int).reshape(-1, 2)


def rows_of(batch: T, rows: np.ndarray) -> T:
    """Some rows of a batch, as numpy arrays."""
    return jax.tree.map(lambda field: np.asarray(field)[rows], batch)
