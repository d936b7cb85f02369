"""Sets of cells of many boards: a bit for each cell, the boards last.

Cells are numbered row by row, without padding. A set is a tuple of V = ceil(n^2 / 32) words, arrays uint32 [..., G] of
G boards; cell c is bit c % 32 of word c // 32. Neighbouring boards are neighbours in memory, as the threads of a GPU
want them. All functions work word by word on whole arrays, so XLA fuses any chain of them into one kernel.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.types import DELTAS, LEFT, RIGHT, Board

CellSet = tuple[jax.Array, ...]
WORD = 32  # cells in a word


def word_count(size: int) -> int:
    """V, the words of a set of cells of an n x n board."""
    return -(-size * size // WORD)


def move_steps(size: int) -> tuple[int, ...]:
    """The number that each move of `MOVES` adds to the number of a cell."""
    return tuple(row * size + column for row, column in DELTAS)


@functools.cache
def _stay_in_row(size: int, move: int) -> tuple[int, ...] | None:
    """The cells from which a move stays in its row or column, as V numbers; None if all do, or leave the words."""
    if move not in (LEFT, RIGHT):
        return None
    columns = np.arange(size * size) % size
    good = columns != (0 if move == LEFT else size - 1)
    return tuple(
        sum(1 << int(c) for c in np.flatnonzero(good[begin : begin + WORD])) for begin in range(0, size**2, WORD)
    )


def lead_into(size: int, cells: CellSet, move: int) -> CellSet:
    """The cells from which `move` leads into the set; bit c of the result is bit c + step of the set."""
    # A shift of the whole set, down by `words` and then `bits`: a row of more than WORD cells skips whole words.
    (words, bits), mask = divmod(move_steps(size)[move], WORD), _stay_in_row(size, move)
    found = []
    for w in range(len(cells)):
        word = jnp.zeros_like(cells[w])
        if 0 <= w + words < len(cells):
            word = cells[w + words] >> bits
        if bits and 0 <= w + words + 1 < len(cells):
            word = word | cells[w + words + 1] << (WORD - bits)
        # Without the mask a step to the side would lead into the next row.
        found.append(word if mask is None else word & jnp.uint32(mask[w]))
    return tuple(found)


def unite(*sets: CellSet) -> CellSet:
    """The union of sets."""
    return tuple(functools.reduce(jnp.bitwise_or, words) for words in zip(*sets, strict=True))


def mark_cells(size: int, cells: jax.Array) -> CellSet:
    """The set of one cell: int32 [..., G] to V words."""
    bit = jnp.uint32(1) << (cells & (WORD - 1)).astype(jnp.uint32)
    return tuple(jnp.where(cells >> 5 == w, bit, jnp.uint32(0)) for w in range(word_count(size)))


def has_cell(cells: CellSet, cell: jax.Array) -> jax.Array:
    """Return whether the set holds a cell, int32 [..., G] of the same rank: bool. Cells off the board give anything."""
    # Selected, not gathered, because a gather would not be fused with what follows.
    word = cells[0]
    for w in range(1, len(cells)):
        word = jnp.where(cell >> 5 == w, cells[w], word)
    return word >> (cell & (WORD - 1)).astype(jnp.uint32) & 1 == 1


def spread_flag(flag: jax.Array) -> jax.Array:
    """bool to no or all bits: uint32."""
    return jnp.uint32(0) - flag.astype(jnp.uint32)


def pack_free_cells(boards: Board) -> CellSet:
    """The free cells of boards with leading axis B: V words uint32 [B]."""
    count, size = boards.holes.shape[:2]
    free = jnp.pad(~boards.holes.reshape(count, -1), ((0, 0), (0, -size * size % WORD)))
    places = jnp.arange(WORD, dtype=jnp.uint32)
    # Each cell has a bit of its own, so the sum is the union.
    words = jnp.sum(free.reshape(count, -1, WORD).astype(jnp.uint32) << places[None, None], axis=2, dtype=jnp.uint32)
    return tuple(words.T)
