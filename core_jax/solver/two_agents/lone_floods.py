"""Distances of single agents to their goals, in bitboards."""

import functools

import jax
import jax.numpy as jnp

from lakewright.core_jax.lake import offsets, shift


def single_floods(size: int, free: jax.Array, goals: jax.Array, bits: int) -> tuple[jax.Array, jax.Array]:
    """The distance of every cell to a goal for single agents, in binary.

    Args: free, goals uint32 [P, N]; goals not in `free` are dropped. Returns: uint32 [bits, P, N], and the cells with
    a way, uint32 [P, N].
    """
    # One buffer for all, boards apart by a row of zeros: a move is a shift of the whole.
    count, gap = free.shape[1], size + 1
    spread = jnp.pad(free, ((0, 0), (0, gap))).reshape(-1)

    def moved(buffer: jax.Array, by: int) -> jax.Array:
        return jax.lax.slice_in_dim(buffer, gap + by, gap + by + spread.shape[0])

    def grown(buffer: jax.Array, into: jax.Array) -> jax.Array:
        near = functools.reduce(jnp.bitwise_or, [moved(buffer, by) for by in (0, *offsets(size)[:4])])
        return jax.lax.dynamic_update_slice(into, near & spread, (gap,))

    def two_layers(carry):
        distance, early, late, digits, _ = carry
        odd, even = grown(late, early), moved(late, 0)
        new = moved(odd, 0) & ~even
        digits = digits | (new & -(distance >> jnp.arange(bits, dtype=jnp.uint32) & 1)[:, None])
        after = grown(odd, late)
        newer = moved(after, 0) & ~moved(odd, 0)
        digits = digits | (newer & -(distance + 1 >> jnp.arange(bits, dtype=jnp.uint32) & 1)[:, None])
        return distance + 2, odd, after, digits, jnp.any(newer != 0)

    none = jnp.zeros(spread.shape[0] + 2 * gap, jnp.uint32)
    begin = jax.lax.dynamic_update_slice(none, jnp.pad(goals, ((0, 0), (0, gap))).reshape(-1) & spread, (gap,))
    digits = jnp.zeros((bits, spread.shape[0]), jnp.uint32)
    carry = (jnp.uint32(1), none, begin, digits, jnp.array(True))
    _, _, reached, digits, _ = jax.lax.while_loop(lambda carry: carry[4], two_layers, carry)
    apart = [field.reshape(*field.shape[:-1], -1, count + gap)[..., :count] for field in (digits, moved(reached, 0))]
    return apart[0], apart[1]


def neighbours(size: int, reached: jax.Array) -> jax.Array:
    """Cells from which one move leads into `reached`: uint32 [..., N]."""
    up, down, left, right = (shift(reached, by, reached.ndim - 1) for by in offsets(size)[:4])
    return up | down | left | right
