"""Independent seeds and keys for each purpose of a run."""

import hashlib

import jax


def seed_for(seed: int, purpose: str) -> int:
    """An independent 31-bit seed for each purpose of a run."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:4], "big") >> 1


def key_for(seed: int, purpose: str) -> jax.Array:
    """An independent typed key for each purpose of a run."""
    return jax.random.key(seed_for(seed, purpose))
