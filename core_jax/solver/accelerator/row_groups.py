"""Groups of the boards of a block that are open: sorted, flooded together, and written back.

Floods of boards with similar bounds end at about the same layer. What a group leaves open is few boards of all groups,
which are flooded again, together. What each board gets does not depend on its group.
"""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from jax import lax

from lakewright.core_jax.solver.accelerator.makespan_floods import UNKNOWN
from lakewright.core_jax.solver.accelerator.sizes import SPARE, Sizes
from lakewright.core_jax.support.programs import program

LAST = 1 << 30  # a key above all others


def flood_unknown(
    numbers: jax.Array, bound: jax.Array, sizes: Sizes, flood: Callable[[jax.Array, jax.Array], jax.Array]
) -> jax.Array:
    """Numbers of all boards, int32 [B], with those that were UNKNOWN found by floods.

    Args:
        numbers: int32 [B], some of them UNKNOWN.
        bound: int32 [B], boards of similar bounds are flooded together.
        sizes: how many at once, and how many of those left by the first floods.
        flood: gets rows, int32 [G], and at how many open boards it may end, int32 []; returns int32 [G].
    """
    order, count = sort_rows(numbers == UNKNOWN, bound)
    for group, spare in ((sizes.flood, sizes.flood // SPARE), (sizes.tail, 0)):
        for rows, into in split_rows(order, int(count), group):
            numbers = _put_numbers(numbers, into, flood(rows, jnp.int32(spare)))
        order, count = order_unknown(numbers)
    return numbers


def split_rows(order: jax.Array, count: int, group: int) -> Iterator[tuple[jax.Array, jax.Array]]:
    """Groups of the first `count` rows of an order: which to read, and where to write."""
    for begin in range(0, count, group):
        yield _take_rows(group, order, jnp.int32(begin), jnp.int32(count))


@program
def sort_rows(first: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Some boards first, bool [B], by a rising key, int32 [B]: the order, int32 [B], and how many these are."""
    key = jnp.where(first, key, jnp.int32(LAST))
    rows = lax.iota(jnp.uint32, key.shape[0])
    # Two unsigned words, which a GPU sorts by radix.
    _, order = lax.sort((key.astype(jnp.uint32), rows), num_keys=1, is_stable=True)
    return order.astype(jnp.int32), jnp.sum(first, dtype=jnp.int32)


@program
def order_unknown(number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The boards whose number is UNKNOWN first: int32 [B]; and how many they are."""
    return sort_rows(number == UNKNOWN, jnp.zeros_like(number))


@program
def order_flagged(flag: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The boards with a flag first: int32 [B]; and how many they are."""
    return sort_rows(flag, jnp.zeros(flag.shape, jnp.int32))


@program(static_argnums=0)
def _take_rows(group: int, order: jax.Array, begin: jax.Array, count: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A group of rows to read, int32 [G], and where to write them: what is beyond `count` goes nowhere."""
    places = begin + lax.iota(jnp.int32, group)
    inside = places < count
    rows = order[jnp.where(inside, places, begin)]
    return rows, jnp.where(inside, rows, order.shape[0] + places)


@program
def _put_numbers(numbers: jax.Array, into: jax.Array, found: jax.Array) -> jax.Array:
    return numbers.at[into].set(found, mode="drop", unique_indices=True)
