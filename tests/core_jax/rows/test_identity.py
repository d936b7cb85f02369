"""Which boards count as one up to symmetry."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lakewright.core_jax.rows import symmetric_fingerprint
from lakewright.core_jax.types import Board

SYMMETRIES = tuple(itertools.product((False, True), range(4)))
seeds = st.integers(0, 2**32 - 1)


def random_board(holes: np.ndarray, seed: int) -> Board:
    """A board of those holes with two agents anywhere."""
    cells = np.argwhere(np.ones_like(holes))[np.random.default_rng(seed).permutation(holes.size)[:4]]
    return Board(holes, cells[:2], cells[2:])


def drawn(board: Board, agents: tuple[int, ...]) -> np.ndarray:
    """The board as one picture: the agents, in an order, have numbers from 1, their goals the same negative."""
    picture = np.zeros((*board.holes.shape, 2), int)
    picture[..., 0] = board.holes
    for number, agent in enumerate(agents, 1):
        picture[*board.starts[agent], 1] = number
        picture[*board.goals[agent], 1] = -number
    return picture


def turned(picture: np.ndarray, mirrored: bool, turns: int) -> np.ndarray:
    return np.rot90(picture.swapaxes(0, 1) if mirrored else picture, turns)


@given(arrays.arrays(bool, (3, 3)), arrays.arrays(bool, (3, 3)), seeds, seeds)
def test_boards_share_a_fingerprint_exactly_if_one_can_be_turned_into_the_other(holes, others, seed, other_seed):
    one, other = random_board(holes, seed), random_board(others, other_seed)
    symmetric = any(
        np.array_equal(turned(drawn(one, agents), *symmetry), drawn(other, (0, 1)))
        for agents in ((0, 1), (1, 0))
        for symmetry in SYMMETRIES
    )
    assert (symmetric_fingerprint(one) == symmetric_fingerprint(other)) == symmetric


@given(arrays.arrays(bool, (4, 4)), seeds, st.sampled_from(SYMMETRIES), st.permutations((0, 1)))
def test_symmetric_copies_share_a_fingerprint(holes, seed, symmetry, agents):
    board = random_board(holes, seed)
    picture = turned(drawn(board, agents), *symmetry)
    starts, goals = (
        np.array([np.argwhere(picture[..., 1] == sign * number)[0] for number in (1, 2)]) for sign in (1, -1)
    )
    copy = Board(picture[..., 0].astype(bool), starts, goals)
    assert symmetric_fingerprint(copy) == symmetric_fingerprint(board)
