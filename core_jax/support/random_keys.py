"""Random keys and seeds: streams of keys by name, and one seed for each purpose of a run."""

import functools
import hashlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

IMPLEMENTATION = "threefry2x32"  # of the keys; fixed, so that no setting of JAX changes the boards


def make_streams(names: Sequence[Sequence[int]]) -> jax.Array:
    """A key for each name, a few integers of which the first is the seed: keys [len(names)].

    Names are hashed by numpy, which compiles nothing.
    """
    words = np.stack([np.random.SeedSequence(name).generate_state(2) for name in names])
    return jax.random.wrap_key_data(jax.device_put(words), impl=IMPLEMENTATION)


def make_jax_key(seed: int) -> jax.Array:
    """The key that `jax.random.key` makes of a seed, 0 to 2^32 - 1, whatever the settings of JAX."""
    return jax.random.wrap_key_data(jax.device_put(np.array([0, seed], np.uint32)), impl=IMPLEMENTATION)


def draw_below(key: jax.Array, limit: int) -> jax.Array:
    """A number below `limit`, int32 [], as `jax.random.randint` draws it with JAX's default flags; consumes the key.

    For programs of others: within those, flags that change random numbers hold, except in the folding of keys.
    """
    high, low = (
        functools.reduce(jnp.bitwise_xor, jax.random.key_data(jax.random.fold_in(jax.random.fold_in(key, half), 0)))
        for half in (0, 1)
    )
    span = jnp.uint32(limit)
    return ((high % span * jnp.uint32((1 << 16) % limit) ** 2 % span + low % span) % span).astype(jnp.int32)


def derive_seed(seed: int, purpose: str) -> int:
    """An independent 31-bit seed for each purpose of a run."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:4], "big") >> 1
