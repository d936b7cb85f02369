"""Whole boards are drawn evenly: the holes, and given the holes every placement that connects all agents."""

from collections import Counter
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lakewright.core_jax.generator.attempts import QUICKLY
from lakewright.core_jax.generator.placements import draw_board, label_components, place_agents, scale_below
from lakewright.core_jax.types import Board
from tests.support.boards.chi_square import assert_even
from tests.support.boards.sample_boards import assert_every, drawing
from tests.support.deep import keep_quick

DRAWS = 30_240
# Components of 4, 3 and 2 cells, and one on its own.
FREE = ~drawing(["..H..", "..H.H", "HHHHH", ".H.HH", ".HHHH"], [], []).holes


def drawn_boards(size: int, agents: int, holes: int, count: int = 512, seed: int = 4) -> tuple[Board, np.ndarray]:
    keys = jax.random.split(jax.random.key(seed), count)
    made = jax.jit(jax.vmap(lambda key: draw_board(size, agents, key, holes)))(keys)
    return jax.tree.map(np.asarray, made)


def labels_of(boards: Board) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(label_components))(jnp.asarray(~boards.holes)))


def test_cells_of_a_component_have_its_smallest_number_and_holes_have_none():
    expected = [[0, 0, 25, 3, 3], [0, 0, 25, 3, 25], [25] * 5, [15, 25, 17, 25, 25], [15, 25, 25, 25, 25]]
    assert np.asarray(label_components(jnp.asarray(FREE))).tolist() == expected


DENSITIES = [(10, 5, 45), (3, 4, 1), (10, 3, 28), (5, 1, 12), (16, 8, 60)]  # size, agents, holes


@pytest.mark.parametrize(("size", "agents", "holes"), keep_quick(DENSITIES, DENSITIES[:1]))
def test_a_board_has_exactly_its_holes_and_each_agent_is_connected_to_its_goal(size, agents, holes):
    boards, fits = drawn_boards(size, agents, holes)
    assert fits.all()
    assert_every(boards.holes.sum(axis=(1, 2)) == holes, boards)
    cells = np.concatenate([boards.starts, boards.goals], axis=1)
    number = np.sort(cells[..., 0] * size + cells[..., 1], axis=1)
    assert_every((np.diff(number, axis=1) > 0).all(axis=1), boards)
    label = labels_of(boards)[np.arange(512)[:, None], cells[..., 0], cells[..., 1]]
    assert_every((label < size * size).all(axis=1), boards)
    assert_every((label[:, :agents] == label[:, agents:]).all(axis=1), boards)


def test_where_there_is_no_room_the_draw_says_so():
    boards, fits = drawn_boards(4, 2, 12)
    label = labels_of(boards)
    room = [sum(np.bincount(one[one < 16], minlength=1) // 2) >= 2 for one in label.reshape(512, -1)]
    assert 0 < sum(room) < 512
    assert_every(fits == room, boards)


def test_holes_are_drawn_evenly():
    boards, _ = drawn_boards(4, 2, 3, DRAWS)
    holes = Counter(map(bytes, boards.holes))
    assert len(holes) == 560, "every way to choose 3 cells of 16"
    assert_even(np.array(list(holes.values())))


def test_given_the_holes_every_placement_is_as_likely_as_any_other():
    keys = jax.random.split(jax.random.key(6), DRAWS)
    starts, goals, fits = jax.jit(
        jax.vmap(lambda key: place_agents(3, jnp.asarray(FREE), key)), compiler_options=QUICKLY
    )(keys)
    assert np.all(fits)
    cells = np.concatenate([starts, goals], axis=1)
    drawn = Counter(map(tuple, (cells[..., 0] * 5 + cells[..., 1]).tolist()))
    label = np.asarray(label_components(jnp.asarray(FREE))).reshape(-1).tolist()
    free = np.flatnonzero(FREE.reshape(-1)).tolist()
    placements = [six for six in permutations(free, 6) if all(label[six[i]] == label[six[i + 3]] for i in range(3))]
    assert set(drawn) <= set(placements)
    assert_even(np.array([drawn[placement] for placement in placements]))


def test_numbers_below_a_limit_are_even():
    bits = jax.random.bits(jax.random.key(8), (DRAWS,))
    assert_even(np.bincount(np.asarray(scale_below(bits, jnp.int32(360))), minlength=360))
    edges = jnp.array([0, 0xFFFFFFFF], jnp.uint32)
    assert np.asarray(scale_below(edges, jnp.int32(65536))).tolist() == [0, 65535]
