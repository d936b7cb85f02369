"""Bitboards: 32 boards in a uint32 word.

A bitboard holds one bit for each cell and board: uint32 [N], board b in bit b. Cells are numbered row by row with one
more column that is always a hole, N = n (n + 1). So a move shifts the cell index by a constant, and a move off the end
of a row leads into that column. This padded index is the one numbering of cells in the solver and the statistics.
Functions here take one word of 32 boards; vmap them over words.
"""

import itertools
import math
from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp

from lakewright.core_jax.types import DELTAS

BOARDS_PER_WORD = 32


def cell_count(size: int) -> int:
    """N, the number of padded cells of an n x n board."""
    return size * (size + 1)


def cell_index(size: int, cells: jax.Array) -> jax.Array:
    """The padded index of (row, column) pairs: int32 [..., 2] to int32 [...]."""
    return cells[..., 0] * (size + 1) + cells[..., 1]


def board_side(count: int) -> int:
    """n of a board with `count` padded cells."""
    return math.isqrt(count)


def cell_position(size: int, index: jax.Array) -> jax.Array:
    """The inverse of `cell_index`: int32 [...] to int32 [..., 2]."""
    return jnp.stack([index // (size + 1), index % (size + 1)], axis=-1)


def move_offsets(size: int) -> tuple[int, ...]:
    """The number that each move of `MOVES` adds to a padded cell index."""
    return tuple(row * (size + 1) + column for row, column in DELTAS)


def pack_bits(bits: jax.Array) -> jax.Array:
    """bool [32, ...] to uint32 [...]."""
    words, lanes = bits.astype(jnp.uint32), BOARDS_PER_WORD
    while lanes > 1:  # halves side by side, which vectorizes
        lanes //= 2
        words = words[:lanes] | words[lanes:] << lanes
    return words[0]


def pack_cells(grid: jax.Array) -> jax.Array:
    """bool [32, n, n] to a bitboard uint32 [N]; the added column holds zeros."""
    return pack_bits(jnp.pad(grid, ((0, 0), (0, 0), (0, 1))).reshape(BOARDS_PER_WORD, -1))


def one_hot(cells: jax.Array, count: int) -> jax.Array:
    """Padded cell indices int32 [32] to a bitboard uint32 [count] with that one cell of each board set."""
    return pack_bits(cells[:, None] == jnp.arange(count))


def one_hots(cells: jax.Array, count: int) -> jax.Array:
    """`one_hot` of the words along two leading axes: int32 [P, Q, 32] to uint32 [P, Q, count]."""
    return jax.vmap(jax.vmap(one_hot, (0, None)), (0, None))(cells, count)


def read_bit(words: jax.Array, lane: jax.Array) -> jax.Array:
    """The bits of board `lane` in uint32 [...]: uint32 [...] of 0 and 1."""
    return words >> lane.astype(jnp.uint32) & 1


def shift_cells(words: jax.Array, by: int, axis: int) -> jax.Array:
    """out[p] = words[p + by] along `axis`, zero if p + by is outside."""
    config = [(0, 0, 0)] * words.ndim
    config[axis] = (-by, by, 0)
    return jax.lax.pad(words, jnp.uint32(0), config)


def space_cells(size: int, cells: jax.Array) -> jax.Array:
    """uint32 [..., N, U] to [..., N', U], with a row of zeros before and after, so that a move is a slice."""
    return jnp.pad(cells, [(0, 0)] * (cells.ndim - 2) + [(size + 1, size + 1), (0, 0)])


def read_spaced(size: int, spaced: jax.Array, by: int = 0) -> jax.Array:
    """out[p] = cells[p + by] of the result of `space_cells`, uint32 [..., N', U]: uint32 [..., N, U]."""
    begin = size + 1 + by
    return jax.lax.slice_in_dim(spaced, begin, begin + cell_count(size), axis=-2)


def any_cell(cells: jax.Array) -> jax.Array:
    """The boards on which any cell is set: uint32 [..., N, U] to [..., U]."""
    return jax.lax.reduce(cells, jnp.uint32(0), jax.lax.bitwise_or, (cells.ndim - 2,))


def by_word(field: jax.Array) -> jax.Array:
    """[B, ...] to [B / 32, 32, ...]; B is a multiple of 32."""
    chex.assert_is_divisible(field.shape[0], BOARDS_PER_WORD)
    return field.reshape(-1, BOARDS_PER_WORD, *field.shape[1:])


def count_cells(cells: jax.Array) -> jax.Array:
    """The number of cells that are set on each board: uint32 [..., N, W] to int32 [..., 32 W], N at most 510."""
    # Two halves, as a byte counts to 255.
    upper, lower = jnp.array_split(cells, 2, axis=-2)
    return _count_bytes(upper) + _count_bytes(lower)


def count_sets(sets: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """`count_cells` of sets uint32 [S, N, W] each, in one computation: int32 [S, 32 W] each."""
    # Concatenated, so that a set is not computed again for each bit that is counted.
    counts = count_cells(jnp.concatenate(list(sets.values())))
    ends = itertools.accumulate(len(cells) for cells in sets.values())
    return {name: counts[end - len(sets[name]) : end] for name, end in zip(sets, ends, strict=True)}


def _count_bytes(cells: jax.Array) -> jax.Array:
    """`count_cells` of at most 255 cells: every eighth board at a time because each count fits a byte."""
    boards = jnp.arange(8, dtype=jnp.uint32)
    counts = jnp.sum(cells[..., None] >> boards & 0x01010101, axis=-3, dtype=jnp.uint32)  # [..., W, 8]
    by_byte = counts[..., None, :] >> (8 * jnp.arange(4, dtype=jnp.uint32)[:, None]) & 0xFF
    return by_byte.astype(jnp.int32).reshape(*counts.shape[:-2], -1)


def by_board(words: jax.Array) -> jax.Array:
    """The bits of uint32 [..., W] by board: int32 [..., 32 W]."""
    bits = read_bit(words[..., None], jnp.arange(BOARDS_PER_WORD)).astype(jnp.int32)
    return bits.reshape(*words.shape[:-1], -1)


def at_least(sets: Sequence[jax.Array] | jax.Array, most: int) -> list[jax.Array]:
    """The cells that are in at least 1, 2, .. `most` of the sets."""
    found = [jnp.zeros_like(sets[0])] * most
    # found[k] holds the cells that are in more than k of the sets so far.
    for cells in sets:
        found = [found[0] | cells, *(more | (less & cells) for less, more in itertools.pairwise(found))]
    return found
