"""Streams of random keys, one for each kind of board: named by whole numbers, the seed first."""

from collections.abc import Sequence

import jax
import numpy as np

IMPLEMENTATION = "threefry2x32"  # of the keys; named, so that no setting changes the boards


def streams(names: Sequence[Sequence[int]]) -> jax.Array:
    """A key for each name: keys [len(names)].

    Hashed by numpy, as this compiles nothing.
    """
    words = np.stack([np.random.SeedSequence(name).generate_state(2) for name in names])
    return jax.random.wrap_key_data(jax.device_put(words), impl=IMPLEMENTATION)
