"""Keys of boards: equal for rows of the same board, or for boards that are the same up to symmetry."""

import hashlib
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from lakewright.core_jax.rows.row import Row

if TYPE_CHECKING:  # settings are checked without JAX, and samplers know fingerprints
    from lakewright.core_jax.types import Board

Fingerprint: TypeAlias = tuple[tuple[str, ...], tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


def fingerprint(row: Row) -> Fingerprint:
    """Grid, starts and goals: what exactly the rows of one board share, whatever their ids and labels."""
    return tuple(row.grid), tuple(row.starts), tuple(row.goals)


def board_key(row: Row) -> str:
    """The SHA-256 of the fingerprint as compact JSON: what files call a board, whatever its id, place and labels."""
    return hashlib.sha256(msgspec.json.encode(fingerprint(row))).hexdigest()


def symmetric_fingerprint(board: "Board") -> bytes:
    """A key that is equal for exactly those boards that turns, mirrors and another order of agents make of one.

    Args: board, of numpy arrays.
    """
    size = board.holes.shape[0]
    places, holes = np.arange(size * size).reshape(size, size), np.asarray(board.holes)
    starts, goals = (np.asarray(ends) for ends in (board.starts, board.goals))
    forms = []
    for mirrored in (False, True):
        for turns in range(4):
            turned = np.rot90(places.T if mirrored else places, turns)  # the place that each one now shows
            moved_to = np.argsort(turned, axis=None).reshape(size, size)
            pairs = np.stack([moved_to[ends[:, 0], ends[:, 1]] for ends in (starts, goals)], 1)
            pairs = pairs[np.lexsort(pairs.T)].astype(np.uint16)
            forms.append(holes.reshape(-1)[turned].tobytes() + pairs.tobytes())
    return min(forms)
