"""Random keys and seeds: streams of keys by name, and one seed or key for each purpose of a run."""

import hashlib
from collections.abc import Sequence

import jax
import numpy as np

IMPLEMENTATION = "threefry2x32"  # of the keys; fixed, so that no setting of JAX changes the boards


def make_streams(names: Sequence[Sequence[int]]) -> jax.Array:
    """A key for each name, a few integers of which the first is the seed: keys [len(names)].

    Names are hashed by numpy, which compiles nothing.
    """
    words = np.stack([np.random.SeedSequence(name).generate_state(2) for name in names])
    return jax.random.wrap_key_data(jax.device_put(words), impl=IMPLEMENTATION)


def derive_seed(seed: int, purpose: str) -> int:
    """An independent 31-bit seed for each purpose of a run."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:4], "big") >> 1


def derive_key(seed: int, purpose: str) -> jax.Array:
    """An independent typed key for each purpose of a run."""
    return jax.random.key(derive_seed(seed, purpose))
