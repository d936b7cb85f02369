"""Keys as numpy's generators."""

import jax
import numpy as np


def numpy_rng(key: jax.Array) -> np.random.Generator:
    """The chances of a typed key, which is consumed: a teacher's few draws need no compiled program."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))
