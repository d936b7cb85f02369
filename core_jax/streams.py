"""Streams of random keys, one for each kind of board: named by whole numbers, the seed first."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np


def streams(names: Sequence[Sequence[int]]) -> jax.Array:
    """A key for each name: keys [len(names)].

    Hashed by numpy, as this compiles nothing; the implementation is named, so that no setting changes the boards.
    """
    words = np.stack([np.random.SeedSequence(name).generate_state(2) for name in names])
    return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")
