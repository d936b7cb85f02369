"""A team of agents on one board as a search sees it, and batches of teams."""

import functools
import itertools
from typing import TypeVar

import flax.struct
import jax
import numpy as np

FAR = 255  # in tables of bytes: no way. Larger costs are kept as FAR - 1, which is still a lower bound.
T = TypeVar("T")


@flax.struct.dataclass
class Team:
    """What is known of one board before its search; costs are bytes, FAR where there is no way.

    starts, goals: int32 [K], padded cells. distance: uint8 [K, N] to the
    own goal. alone: uint8 [K, K, N], alone[i, j] the distance of agent i while j stands on its goal. pairs: uint8
    [3, P, N, N], for each `Mode` and pair of agents (i < j, in the order of `itertools.combinations`) a lower bound of
    what the two need from a joint state.
    """

    starts: jax.Array
    goals: jax.Array
    distance: jax.Array
    alone: jax.Array
    pairs: jax.Array


@functools.cache
def pairs_of(agents: int) -> np.ndarray:
    """Every pair of agents: int [P, 2]."""
    return np.array(list(itertools.combinations(range(agents), 2)), int).reshape(-1, 2)


@functools.cache
def pair_index(agents: int) -> dict[tuple[int, int], int]:
    """The place of each pair in `pairs_of`."""
    return {(int(first), int(second)): place for place, (first, second) in enumerate(pairs_of(agents))}


def rows_of(batch: T, rows: np.ndarray) -> T:
    """Some rows of a batch, as numpy arrays."""
    return jax.tree.map(lambda field: np.asarray(field)[rows], batch)


def joined(parts: list[T]) -> T:
    """One batch from several of the same shapes."""
    return jax.tree.map(lambda *fields: np.concatenate(fields), *parts)
