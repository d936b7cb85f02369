"""Plans as arrays of moves, int8 [..., T], padded with PAD."""

import numpy as np

from lakewright.core_jax.types import PAD, WAIT


def pad_moves(moves: np.ndarray, horizon: int) -> np.ndarray:
    """Pads int8 [..., T] with PAD to `horizon` steps."""
    width = [(0, 0)] * (moves.ndim - 1) + [(0, horizon - moves.shape[-1])]
    return np.pad(moves, width, constant_values=PAD)


def trimmed(moves: np.ndarray) -> np.ndarray:
    """The plans int8 [..., T] without waits after each agent's last move, cut to the longest of them."""
    real = (moves != PAD) & (moves != WAIT)
    going = np.flip(np.maximum.accumulate(np.flip(real, -1), axis=-1), -1)
    return np.where(going, moves, PAD).astype(np.int8)[..., : int(going.sum(axis=-1).max(initial=0))]
