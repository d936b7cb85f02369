"""Bitboards against the same things in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.lake import (
    BOARDS_PER_WORD,
    board_side,
    by_word,
    cell_count,
    cell_index,
    cell_position,
    move_offsets,
    one_hot,
    pack_bits,
    pack_cells,
    read_bit,
    shift_cells,
)
from lakewright.core_jax.types import DELTAS
from tests.support.boards.sample_boards import in_numpy

LANES = range(BOARDS_PER_WORD)
seeds = st.integers(0, 2**32 - 1)
sizes = st.sampled_from([3, 5])
some = settings(max_examples=20)
pack, pack_grid, mark = in_numpy(pack_bits), in_numpy(pack_cells), in_numpy(one_hot, static=1)


@jax.jit
def unpack(words: jax.Array) -> jax.Array:
    """The bits of each board: [32, ...]."""
    return jax.vmap(read_bit, in_axes=(None, 0))(words, jnp.arange(BOARDS_PER_WORD))


@some
@given(seeds)
def test_each_board_is_unpacked_as_it_was_packed(seed):
    bits = np.random.default_rng(seed).random((BOARDS_PER_WORD, 4, 7)) < 0.5
    words = pack(bits)
    assert words.dtype == jnp.uint32
    assert words.shape == (4, 7)
    assert (np.asarray(unpack(words)) == bits).all()


def test_board_b_is_bit_b():
    assert pack(np.eye(BOARDS_PER_WORD, dtype=bool)).tolist() == [1 << board for board in LANES]


@some
@given(seeds, sizes)
def test_a_packed_grid_keeps_its_cells_and_adds_an_empty_column(seed, size):
    grid = np.random.default_rng(seed).random((BOARDS_PER_WORD, size, size)) < 0.5
    words = pack_grid(grid)
    assert words.shape == (cell_count(size),)
    cells = cell_index(size, np.stack(np.indices((size, size)), axis=-1))
    assert (np.asarray(unpack(words))[:, cells] == grid).all()
    assert not np.asarray(words).reshape(size, size + 1)[:, size].any()


@some
@given(seeds, sizes)
def test_one_hot_sets_one_cell_of_each_board(seed, size):
    count = cell_count(size)
    cells = np.random.default_rng(seed).integers(0, count, BOARDS_PER_WORD)
    words = mark(cells, count)
    assert (np.asarray(unpack(words)) == (np.arange(count) == cells[:, None])).all()


@some
@given(seeds, st.integers(-6, 6), st.sampled_from([0, 1]))
def test_a_shift_reads_further_along_and_fills_with_zeros(seed, by, axis):
    words = np.random.default_rng(seed).integers(0, 2**32, (9, 8), dtype=np.uint32)
    expected = np.zeros_like(words)
    for place in range(words.shape[axis]):
        if 0 <= place + by < words.shape[axis]:
            np.moveaxis(expected, axis, 0)[place] = np.moveaxis(words, axis, 0)[place + by]
    assert (np.asarray(shift_cells(jnp.asarray(words), by, axis)) == expected).all()


def test_a_padded_index_gives_its_cell_and_a_cell_count_its_side():
    cells = np.stack(np.indices((11, 11)), axis=-1)
    for size in range(1, 12):
        found = np.asarray(cell_position(size, cell_index(size, cells)))  # of one shape, so of one program
        assert (found == cells)[:size, :size].all(), size
        assert board_side(cell_count(size)) == size


def test_boards_go_to_words_in_order():
    words = by_word(jnp.arange(3 * BOARDS_PER_WORD * 2).reshape(-1, 2))
    assert words.shape == (3, BOARDS_PER_WORD, 2)
    assert words[1, 5].tolist() == [2 * (BOARDS_PER_WORD + 5), 2 * (BOARDS_PER_WORD + 5) + 1]
    with pytest.raises(AssertionError):
        by_word(jnp.arange(33))


def test_a_move_is_a_constant_shift_and_what_leaves_a_row_lands_in_the_added_column():
    size = 4
    for cell in np.ndindex(size, size):
        for delta, by in zip(DELTAS, move_offsets(size), strict=True):
            target = np.add(cell, delta)
            landed = int(cell_index(size, np.array(cell))) + by
            if ((target >= 0) & (target < size)).all():
                assert landed == cell_index(size, target), (cell, delta)
            else:
                assert landed % (size + 1) == size or not 0 <= landed < cell_count(size), (cell, delta)
