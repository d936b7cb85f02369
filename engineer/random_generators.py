"""Keys of JAX as the engineer uses them: split, and turned into NumPy's generators. JAX is loaded when one is."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lakewright.core_jax.errors import InputError

if TYPE_CHECKING:
    import jax

Key: TypeAlias = "jax.Array"
"""A typed key of JAX, used once."""


def numpy_rng(key: Key) -> np.random.Generator:
    """A generator of NumPy for a key, which it consumes: a teacher's few draws need no compiled program."""
    import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def draw_normal(rng: np.random.Generator, mean: np.ndarray, covariance: np.ndarray, count: int) -> np.ndarray:
    """Draws float [count, N] from a normal distribution.

    Args:
        rng: consumed.
        mean: float [N].
        covariance: float [N, N], positive definite.
        count: how many are drawn.
    """
    before = rng.bit_generator.state
    try:
        return rng.multivariate_normal(mean, covariance, count, method="eigh")
    except np.linalg.LinAlgError:
        # OpenBLAS finds no eigenvectors of a few harmless matrices (seen with 0.3.31 on an Intel Xeon).
        rng.bit_generator.state = before
        return rng.multivariate_normal(mean, covariance, count, method="cholesky")


def make_key(seed: int) -> Key:
    """The key of a seed."""
    import jax

    return jax.random.key(seed)


def check_key(key: object, where: str) -> None:
    """Raises InputError where this is not a single typed key of JAX."""
    if not str(getattr(key, "dtype", "")).startswith("key<") or getattr(key, "shape", None) != ():
        raise InputError(f"{where}: key is {key!r:.60}; make one by make_key(seed) of engineer.random_generators")


def split_key(key: Key, count: int = 2) -> Key:
    """As many keys from one, which is consumed."""
    import jax

    return jax.random.split(key, count)


def fold_key(key: Key, data: int) -> Key:
    """A key for one of several purposes; the same key may be folded with other numbers."""
    import jax

    return jax.random.fold_in(key, data)
