"""Features of a board's free cells: how many, how connected, how narrow."""

import functools

import chex
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake.bitboards import at_least, cell_count, count_sets, move_offsets, shift_cells
from lakewright.core_jax.types import DOWN, LEFT, RIGHT, UP

CLOCKWISE = ((UP, RIGHT), (RIGHT, DOWN), (DOWN, LEFT), (LEFT, UP))  # with a diagonal neighbour between each two


def count_terrain(size: int, free: jax.Array) -> dict[str, jax.Array]:
    """Counts of cells of free uint32 [N, W], int32 [32 W] each.

    free_cells; links, pairs of neighbours; dead_ends, of one neighbour; corridors, of two or fewer.
    bottlenecks: cells whose neighbours are not all connected within the eight cells around, but form two or more groups
    (the connectivity number of Yokoi, Toriwaki and Fukumura, 1975); all articulation points are such.
    """
    chex.assert_shape(free, (cell_count(size), None))
    by = move_offsets(size)
    near = [shift_cells(free, step, 0) for step in by[:4]]
    at_corner = [shift_cells(free, by[one] + by[other], 0) for one, other in CLOCKWISE]
    # Clockwise, a group ends at each neighbour that is not connected to the next one.
    ends = [near[one] & ~(corner & near[other]) for (one, other), corner in zip(CLOCKWISE, at_corner, strict=True)]
    one, two, three = at_least(near, 3)
    counts = count_sets(
        {
            "free_cells": free[None],
            "links": jnp.stack([free & near[RIGHT], free & near[DOWN]]),
            "dead_ends": (free & one & ~two)[None],
            "corridors": (free & ~three)[None],
            "bottlenecks": (free & at_least(ends, 2)[1])[None],
        }
    )
    return {name: jnp.sum(count, axis=0) for name, count in counts.items()}


def count_components(free: jax.Array) -> dict[str, jax.Array]:
    """Of free bool [B, n, n], the number of connected components and the cells of the largest_component: int32 [B]."""
    names = _name_components(free)
    hole = jnp.array(jnp.iinfo(names.dtype).max, names.dtype)
    own = jnp.arange(len(names), dtype=names.dtype)[:, None]

    def count(cells: jax.Array) -> jax.Array:
        return jnp.sum(cells, axis=0, dtype=names.dtype)

    def following(carry):
        last, left, largest = carry
        name = jnp.min(jnp.where(names > last, names, hole), axis=0)
        size = count((names == name) & (name < hole))
        return name, left - size, jnp.maximum(largest, size)

    # One component after another, until the rest is not larger than the largest so far.
    whole = names[0] == 0
    size = count((names == 0) & whole)
    begin = jnp.zeros_like(size), count(names < hole) - size, size
    _, _, largest = jax.lax.while_loop(lambda carry: jnp.any(carry[1] > carry[2]), following, begin)
    return {
        "components": count(names == own).astype(jnp.int32),
        "largest_component": largest.astype(jnp.int32),
    }


def _name_components(free: jax.Array) -> jax.Array:
    """For each padded cell the smallest cell of its component, the largest number at holes: uint8 or uint16 [N, B].

    As `label_components` of `lakewright.core_jax.generator.placements`, but with the boards last, so that their bytes
    are adjacent.
    """
    boards, size, _ = free.shape
    cells, margin = cell_count(size), size + 1
    kind = jnp.uint8 if cells < 255 else jnp.uint16
    hole = jnp.array(jnp.iinfo(kind).max, kind)
    padded = jnp.pad(free, ((0, 0), (0, 0), (0, 1))).reshape(boards, -1).T
    walls = jnp.where(padded, jnp.zeros_like(hole), hole)

    def read(buffer: jax.Array, by: int = 0) -> jax.Array:
        return jax.lax.slice_in_dim(buffer, margin + by, margin + by + cells)

    def written(buffer: jax.Array, names: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(buffer, names, (margin, 0))

    def spread(buffer: jax.Array) -> jax.Array:
        return functools.reduce(jnp.minimum, [read(buffer, by) for by in move_offsets(size)]) | walls

    def twice(carry):
        early, late, _ = carry
        late = written(late, spread(early))
        names = spread(late)
        return written(early, names), late, jnp.any(names != read(early))

    nothing = jnp.full((cells + 2 * margin, boards), hole)
    begin = written(nothing, jnp.arange(cells, dtype=kind)[:, None] | walls)
    return read(jax.lax.while_loop(lambda carry: carry[2], twice, (begin, nothing, jnp.array(True)))[0])
