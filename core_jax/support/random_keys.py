"""Streams of random keys, one for each kind of board, named by integers; the first is the seed."""

from collections.abc import Sequence

import jax
import numpy as np

IMPLEMENTATION = "threefry2x32"  # of the keys; fixed, so that no setting of JAX changes the boards


def make_streams(names: Sequence[Sequence[int]]) -> jax.Array:
    """A key for each name: keys [len(names)].

    Names are hashed by numpy, which compiles nothing.
    """
    words = np.stack([np.random.SeedSequence(name).generate_state(2) for name in names])
    return jax.random.wrap_key_data(jax.device_put(words), impl=IMPLEMENTATION)
