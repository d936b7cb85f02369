"""Keys as the engineer uses them: split, folded, and turned into NumPy's generators. Bit for bit as JAX's, without JAX.

A key is two words of 32 bits. Others are made from it by the hash Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror
and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011), counted as `jax.random` does by default.

Typed keys of JAX are accepted, of any implementation, and JAX splits them itself.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from lakewright.core_jax.errors import InputError

if TYPE_CHECKING:
    import jax

WORD = 0xFFFFFFFF
PARITY = 0x1BD11BDA  # joined with the words of a key: the third that is added between rounds
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # bits, in turn four rounds each


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """A key, used once; made by `make_key`. For JAX it is `jax.random.wrap_key_data(key.words())`.

    high, low: its words.
    """

    high: int
    low: int

    def words(self) -> np.ndarray:
        """uint32 [2]."""
        return np.array([self.high, self.low], np.uint32)


def numpy_rng(key: "Key | jax.Array") -> np.random.Generator:
    """A generator of NumPy for a key, which it consumes: a teacher's few draws need no compiled program."""
    if isinstance(key, Key):
        return np.random.default_rng(key.words())
    import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def make_key(seed: int) -> Key:
    """The key of a seed, of which the lowest 32 bits count."""
    return Key(0, seed & WORD)


def check_key(key: object, where: str) -> None:
    """Raises InputError if this is neither a key nor a single typed key of JAX."""
    typed = str(getattr(key, "dtype", "")).startswith("key<") and getattr(key, "shape", None) == ()
    if not (typed or isinstance(key, Key)):
        raise InputError(f"{where}: key is {key!r:.60}; make one by make_key(seed) of engineer.random_generators")


def split_key(key: "Key | jax.Array", count: int = 2) -> list[Any]:
    """As many keys from one, which is consumed; each of its kind."""
    if isinstance(key, Key):
        return [_hash_words(key, 0, number) for number in range(count)]
    import jax

    return list(jax.random.split(key, count))


def fold_key(key: "Key | jax.Array", data: int) -> Any:
    """A key of the same kind for one of several purposes; the same key may be folded with other numbers.

    data: only the lowest 32 bits count.
    """
    if isinstance(key, Key):
        return _hash_words(key, 0, data & WORD)
    import jax

    return jax.random.fold_in(key, data)


def _hash_words(key: Key, first: int, second: int) -> Key:
    """Threefry-2x32 of two words under a key."""
    # Bit for bit what `jax.random` computes: run folders hold what these keys drew, so they may never change.
    added = key.high, key.low, key.high ^ key.low ^ PARITY
    first, second = (first + added[0]) & WORD, (second + added[1]) & WORD
    for turn in range(5):
        for bits in ROTATIONS[turn % 2]:
            first = (first + second) & WORD
            second = ((second << bits | second >> 32 - bits) & WORD) ^ first
        first, second = (first + added[(turn + 1) % 3]) & WORD, (second + added[(turn + 2) % 3] + turn + 1) & WORD
    return Key(first, second)


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
