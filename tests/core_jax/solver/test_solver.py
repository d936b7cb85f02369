"""The solver against exhaustive search and known answers."""

import functools
from collections.abc import Callable

import jax
import numpy as np
import pytest

from lakewright.core_jax.lake import pad_moves, verify
from lakewright.core_jax.solver import flood_boards, solve, solve_by_flood
from lakewright.core_jax.types import PAD, WAIT, Board, Failure, Labels
from tests.support.boards import search_oracle as oracle
from tests.support.boards.sample_boards import (
    as_lists,
    as_strings,
    assert_every,
    assert_same_optima,
    batch,
    drawing,
    each,
    mixed_boards,
    optima,
    picture,
    searched,
)

COUNTS = {3: 2000, 4: 1200, 5: 600, 6: 200}
SERPENTINE = [".....", "HHHH.", ".....", ".HHHH", "....."]
SIDING_FAR_AWAY = [".....", "HHHH.", ".....", ".HHH.", "....H"]

deep = pytest.mark.deep
each_size = pytest.mark.parametrize("size", [3, pytest.param(4, marks=deep), 5, pytest.param(6, marks=deep)])
each_way = pytest.mark.parametrize("label", [solve, solve_by_flood])


@functools.cache
def solved(size: int, label: Callable[[Board], Labels]) -> tuple[Board, Labels]:
    boards = mixed_boards(size, COUNTS[size], size)
    return boards, label(boards)


@functools.cache
def searched_at(size: int) -> np.ndarray:
    return searched(mixed_boards(size, COUNTS[size], size))


@each_size
@each_way
def test_labels_agree_with_exhaustive_search(size, label):
    boards, labels = solved(size, label)
    assert_same_optima(boards, optima(labels), searched_at(size))
    assert_every(labels.solvable == (labels.sum_of_costs >= 0), boards, solvable=labels.solvable)
    assert not labels.solvable.all(), "the sample should hold unsolvable boards"
    assert labels.wait_required.any(), "the sample should hold boards on which a wait is required"


@each_size
@each_way
def test_every_plan_replays_at_exactly_its_sum_of_costs(size, label):
    boards, labels = solved(size, label)
    played = verify(boards, labels.moves)
    valid = (played.failure == Failure.NONE) & (played.sum_of_costs == labels.sum_of_costs)
    assert_every(valid | ~labels.solvable, boards, moves=labels.moves, failure=played.failure)
    for board, moves, cost in list(zip(each(boards), labels.moves, labels.sum_of_costs, strict=True))[:200]:
        result = oracle.play(*as_lists(board), as_strings(moves))
        assert cost < 0 or (result.failure, result.sum_of_costs) == ("none", cost), picture(board) + f"\n{result}"


@each_size
@each_way
def test_a_plan_waits_exactly_where_a_wait_is_required(size, label):
    boards, labels = solved(size, label)
    waits = (labels.moves == WAIT).any(axis=(1, 2))
    assert_every(waits == labels.wait_required, boards, moves=labels.moves, wait_required=labels.wait_required)


@each_size
@each_way
def test_a_plan_is_padded_at_its_end_only_and_ends_on_a_move(size, label):
    boards, labels = solved(size, label)
    padded = labels.moves == PAD
    assert_every((np.diff(padded.astype(int), axis=2) >= 0).all(axis=(1, 2)), boards, moves=labels.moves)
    last = np.take_along_axis(labels.moves, np.maximum((~padded).sum(axis=2) - 1, 0)[..., None], axis=2)
    assert_every((last != WAIT).all(axis=(1, 2)), boards, moves=labels.moves)


@each_size
@each_way
def test_an_unsolvable_board_has_no_plan(size, label):
    boards, labels = solved(size, label)
    assert_every((labels.moves == PAD).all(axis=(1, 2)) | labels.solvable, boards, moves=labels.moves)


KNOWN = {
    "a corridor swap is unsolvable": (["...."], [(0, 0), (0, 3)], [(0, 3), (0, 0)], (-1, -1)),
    "a siding in the middle": (["@@.@@", "....."], [(1, 0), (1, 4)], [(1, 4), (1, 0)], (6, 11)),
    "a siding at the end": ([".@@@@", "....."], [(1, 0), (1, 4)], [(1, 4), (1, 0)], (-1, -1)),
    "an open crossing": (["...", "...", "..."], [(1, 0), (0, 1)], [(1, 2), (2, 1)], (3, 5)),
    "a narrow crossing": (["@.@", "...", "@.@"], [(1, 0), (0, 1)], [(1, 2), (2, 1)], (3, 5)),
    "diagonal swaps": (["..", ".."], [(0, 0), (0, 1)], [(1, 1), (1, 0)], (2, 4)),
    "one stays home": (["..."], [(0, 0), (0, 1)], [(0, 0), (0, 2)], (1, 1)),
    "one follows the other": (["...."], [(0, 0), (0, 1)], [(0, 1), (0, 2)], (1, 2)),
    "neighbours swap on a ring": (["...", ".@.", "..."], [(0, 0), (0, 1)], [(0, 1), (0, 0)], (7, 8)),
    "one at home blocks a corridor": (["....."], [(0, 0), (0, 2)], [(0, 4), (0, 2)], (-1, -1)),
}


def test_known_boards_have_their_known_optima():
    boards = batch([drawing(rows, starts, goals, size=5) for rows, starts, goals, _ in KNOWN.values()])
    labels = solve(boards)
    expected = np.array([answer for *_, answer in KNOWN.values()])
    assert_every((optima(labels)[:, :2] == expected).all(axis=1), boards, name=np.array(list(KNOWN)), expected=expected)
    assert_same_optima(boards, optima(labels), searched(boards))
    waiting = dict(zip(KNOWN, labels.wait_required, strict=True))
    assert waiting["a narrow crossing"], "the narrow crossing is solved only by waiting"
    assert not waiting["neighbours swap on a ring"], "on the ring both go around, nobody waits"


def test_the_oracle_rotates_three_agents_at_once():
    square = [(0, 0), (0, 1), (1, 1)]
    assert oracle.optima(["..", ".."], square, [(0, 1), (1, 1), (1, 0)]) == (1, 3, False)


def test_agents_may_start_at_home_or_on_the_goal_of_the_other():
    boards = mixed_boards(7, 512, 3)
    ends = np.concatenate([boards.starts, boards.goals], axis=1)
    two_of_them = np.random.default_rng(7).random((512, 4)).argsort(axis=1)[:, :2]
    boards = boards.replace(goals=np.take_along_axis(ends, two_of_them[..., None], axis=1))
    assert_same_optima(boards, optima(solve(boards)), searched(boards))


def test_boards_of_unequal_depth_do_not_disturb_each_other():
    drawn = [
        drawing(["....."] * 5, [(0, 0), (4, 4)], [(0, 1), (4, 3)]),
        drawing(SERPENTINE, [(0, 1), (0, 0)], [(4, 4), (4, 3)]),
        drawing(SIDING_FAR_AWAY, [(0, 0), (0, 1)], [(0, 3), (0, 2)]),
        drawing(SERPENTINE, [(0, 0), (0, 1)], [(4, 4), (4, 3)]),
    ]
    boards = batch(drawn + each(mixed_boards(5, 28, 5)))
    together = solve(boards)
    alone = [solve(jax.tree.map(lambda field: field[None], board)) for board in each(boards)]
    assert_same_optima(boards, optima(together), np.concatenate([optima(labels) for labels in alone]))
    moves = np.concatenate([pad_moves(labels.moves, together.moves.shape[-1]) for labels in alone])
    assert_every((together.moves == moves).all(axis=(1, 2)), boards, together=together.moves, alone=moves)
    assert_same_optima(batch(drawn), optima(together)[:4], searched(batch(drawn)))


def test_a_size_is_compiled_once():
    solve(mixed_boards(0, 20, 3))
    compiled = flood_boards._cache_size()
    solve(mixed_boards(1, 300, 3))
    assert flood_boards._cache_size() == compiled
