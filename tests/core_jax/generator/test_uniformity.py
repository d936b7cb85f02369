"""Boards, maps and starts are drawn evenly: chi-square tests against plain rejection."""

import functools
import math
from collections import Counter
from itertools import combinations, permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.core_jax.generator.attempts import draw_map, pick_states
from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import Board
from tests.support.boards.chi_square import assert_as_likely, assert_even
from tests.support.boards.sample_boards import assert_every
from tests.support.deep import keep_quick

DRAWS = 30_240


@functools.cache
def every_board(holes: int) -> tuple[Board, np.ndarray]:
    """All 3x3 boards for two agents whose four cells are distinct, and of each a number that its mirror images, its
    rotations and the same with the agents exchanged share."""
    maps = list(combinations(range(9), holes))
    cells = [(hole, ends) for hole in maps for ends in permutations(sorted({*range(9)} - {*hole}), 4)]
    is_hole = np.array([np.isin(np.arange(9), hole) for hole, _ in cells])
    starts, goals = np.moveaxis(np.array([ends for _, ends in cells]).reshape(-1, 2, 2), 1, 0)
    boards = Board(
        is_hole.reshape(-1, 3, 3), *(np.stack([c // 3, c % 3], -1).astype(np.int32) for c in (starts, goals))
    )
    return boards, classes(boards)


def classes(boards: Board) -> np.ndarray:
    """A number a 3x3 board, the same for those that differ by symmetry only: int64 [B]."""
    grid = np.arange(9).reshape(3, 3)
    images = [np.rot90(side, turns).reshape(-1) for side in (grid, grid.T) for turns in range(4)]
    ends = np.concatenate([boards.starts, boards.goals], axis=1) @ [3, 1]
    codes = []
    for image in images:
        holes = np.asarray(boards.holes).reshape(-1, 9) @ (1 << image)
        for order in ([0, 1, 2, 3], [1, 0, 3, 2]):
            codes.append(holes * 9**4 + image[ends[:, order]] @ 9 ** np.arange(4))
    return np.min(codes, axis=0)


@pytest.mark.parametrize(("holes", "wait"), keep_quick([(1, True), (2, False), (3, True), (3, False)], [(3, True)]))
def test_boards_are_drawn_as_by_plain_rejection_except_that_each_map_counts_once(holes, wait):
    # All boards, those outside the stratum rejected: each as likely as any other. Here, in inverse proportion to the
    # number of boards that its map, with its goals, has in the stratum.
    boards, of_class = every_board(holes)
    labels = solve(boards)
    kept = np.asarray(labels.solvable) & (labels.wait_required == wait)
    on_map = np.asarray(boards.holes).reshape(-1, 9) @ (1 << np.arange(9)) * 9**4 + (boards.goals @ [3, 1]) @ [1, 9]
    maps, which, together = np.unique(on_map[kept], return_inverse=True, return_counts=True)
    names, place = np.unique(of_class[kept], return_inverse=True)
    weights = np.bincount(place, 1 / together[which])
    config = EnvConfig.single(3, 2, min(holes / 5, 0.5), float(wait))
    drawn = generate(config, 4, DRAWS)[3].boards
    found = classes(drawn)
    assert np.isin(found, names).all(), "a board that is not in the stratum"
    assert_as_likely(np.bincount(np.searchsorted(names, found), minlength=len(names)), weights)
    # And on each map every board of the stratum is as likely as any other.
    drawn_map = np.asarray(drawn.holes).reshape(-1, 9) @ (1 << np.arange(9)) * 9**4 + (drawn.goals @ [3, 1]) @ [1, 9]
    assert_even_on_each(drawn_map, drawn.starts @ [3, 1] @ [1, 9], dict(zip(maps, together, strict=True)))


def assert_even_on_each(groups: np.ndarray, values: np.ndarray, choices: dict[int, int]) -> None:
    """Chi-square, all groups together, of values that are even among so many choices in each group."""
    found = freedom = 0.0
    size = Counter(groups.tolist())
    for (group, _), times in Counter(zip(groups.tolist(), values.tolist(), strict=True)).items():
        found += times**2 * choices[group] / size[group]
    found -= len(groups)
    freedom = sum(choices[group] - 1 for group in size)
    assert abs(found - freedom) < 6 * math.sqrt(2 * freedom), f"chi-square {found:.0f} at {freedom} degrees"


def test_a_state_is_picked_evenly_among_those_of_its_board():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2**32, (12, 12), dtype=np.uint32)
    states[5] = 0
    lane = 7
    members = (states >> lane & 1).astype(bool)
    tickets = jax.random.bits(jax.random.key(1), (DRAWS, 32))
    pick = jax.jit(lambda tickets: jax.lax.map(lambda word: pick_states(jnp.asarray(states), word), tickets))
    cells, met = jax.tree.map(np.asarray, pick(tickets))
    drawn = np.zeros((12, 12), int)
    np.add.at(drawn, tuple(cells[:, lane].T), 1)
    assert np.all(met[:, lane]), "of the states of some boards none was picked"
    assert drawn[~members].sum() == 0, "a state was picked that is not in the set"
    assert_even(drawn[members])


def test_without_states_none_is_picked():
    all_but_lane_7 = jnp.full((12, 12), 0xFFFFFFFF ^ 1 << 7, jnp.uint32)
    _, met = pick_states(all_but_lane_7, jnp.full(32, 5, jnp.uint32))
    assert met.tolist() == [lane != 7 for lane in range(32)]


def test_maps_are_drawn_evenly():
    bits = jax.random.bits(jax.random.key(2), (DRAWS, 9))
    free, goals = jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda bits: draw_map(3, bits, 2)))(bits))
    maps = Counter(zip(map(bytes, free), map(bytes, goals), strict=True))
    assert len(maps) == 9 * 8 * 21, "every pair of goals with every pair of holes"
    assert_even(np.array(list(maps.values())))
    ends_are_free = np.take_along_axis(free.reshape(-1, 9), goals[..., 0] * 3 + goals[..., 1], axis=1).all(axis=1)
    assert_every((free.sum(axis=(1, 2)) == 7) & ends_are_free, Board(~free, goals, goals))
