"""The simulator against the oracle's replay, and by hand."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.lake import verdict, verify
from lakewright.core_jax.lake.dynamics import PACKED_SIZE, step
from lakewright.core_jax.lake.verification import BLOCK_PLANS, _judge_plans
from lakewright.core_jax.types import (
    DELTAS,
    DOWN,
    FAILURE_NAMES,
    JUMP,
    LEFT,
    PAD,
    RIGHT,
    UP,
    WAIT,
    Board,
    BoardVerdict,
    Failure,
)
from tests.support.boards import search_oracle as oracle
from tests.support.boards.sample_boards import (
    as_lists,
    as_moves,
    as_strings,
    assert_every,
    drawing,
    each,
    in_numpy,
    mixed_boards,
    picture,
)

STEPS = 8
OPEN = ["...", "...", "..."]
ONE_HOLE = ["...", ".H.", "..."]
verdicts = in_numpy(jax.vmap(verdict))
one_verdict = in_numpy(verdict)
one_step = in_numpy(step)
steps = in_numpy(jax.vmap(step))


def random_plans(seed: int, boards: Board) -> tuple[Board, np.ndarray]:
    """Plans int8 [B, K, STEPS] that mostly avoid holes and edges, few jump; most boards get goals at their ends."""
    rng = np.random.default_rng(seed)
    positions, size = boards.starts, boards.holes.shape[1]
    moves = rng.integers(0, 5, (*positions.shape[:2], STEPS)).astype(np.int8)
    lengths = rng.integers(0, STEPS + 1, positions.shape[:2])
    for time in range(STEPS):
        target = positions + np.array(DELTAS)[moves[..., time]]
        row, column = np.moveaxis(np.clip(target, 0, size - 1), -1, 0)
        off_board = ((target < 0) | (target >= size)).any(axis=-1)
        blocked = off_board | boards.holes[np.arange(len(row))[:, None], row, column]
        moves[..., time][blocked & (rng.random(blocked.shape) < 0.95)] = WAIT
        positions = np.where((blocked | (time >= lengths))[..., None], positions, target)
    moves[rng.random(moves.shape) < 0.004] = JUMP
    moves[np.arange(STEPS) >= lengths[..., None]] = PAD
    home = rng.random((len(moves), 1, 1)) < 0.8
    return boards.replace(goals=np.where(home, positions, boards.goals).astype(np.int32)), moves


@functools.cache
def played(size: int, agents: int) -> tuple[Board, np.ndarray, BoardVerdict, list[oracle.Played]]:
    """Random plans, their verdicts and the oracle's."""
    boards, moves = random_plans(agents, mixed_boards(agents, 2000, size, agents))
    expected = [oracle.play(*as_lists(b), as_strings(m)) for b, m in zip(each(boards), moves, strict=True)]
    return boards, moves, verdicts(boards, moves), expected


each_crowd = pytest.mark.parametrize(("size", "agents"), [(4, 2), (4, 3), (5, 5)])


@each_crowd
def test_the_verdict_on_random_plans_is_the_oracles(size, agents):
    boards, moves, found, expected = played(size, agents)
    names = np.array(FAILURE_NAMES)[found.failure]
    fields = zip(names, found.agent, found.step, found.makespan, found.sum_of_costs, strict=True)
    for board, plan, result, answer in zip(each(boards), moves, fields, expected, strict=True):
        assert result == answer, picture(board) + f"\nplan={as_strings(plan)}\nfound={result}\nexpected={answer}"


@each_crowd
def test_random_plans_meet_every_failure(size, agents):
    *_, expected = played(size, agents)
    met = [result.failure for result in expected]
    for name in ("none", "illegal_move", "hole", "vertex_conflict", "swap_conflict", "goal_not_reached"):
        assert met.count(name) >= 10, f"{name}: {met.count(name)} of {len(met)} plans"


@each_crowd
def test_legal_steps_are_those_before_the_failure(size, agents):
    boards, moves, found, _ = played(size, agents)
    length = (moves != PAD).sum(axis=2).max(axis=1)
    expected = np.where(found.failure == Failure.NONE, length, found.step)
    assert_every(found.legal_steps == expected, boards, moves=moves, legal_steps=found.legal_steps)


@each_crowd
def test_one_step_fails_as_a_plan_of_one_move_does(size, agents):
    boards, moves, *_ = played(size, agents)
    boards, first = jax.tree.map(lambda field: field[:500], boards), moves[:500, :, :1]
    positions, failure, agent = steps(boards.holes, boards.starts, first[..., 0])
    whole = verdicts(boards, first)
    legal = (whole.failure == Failure.NONE) | (whole.failure == Failure.GOAL_NOT_REACHED)
    assert_every(failure == np.where(legal, Failure.NONE, whole.failure), boards, moves=first)
    assert_every(agent == np.where(legal, -1, whole.agent), boards, moves=first)
    at_goal = (positions == boards.goals).all(axis=-1)
    assert_every((at_goal == whole.at_goal).all(axis=1) | ~legal, boards, moves=first)


# rows, starts, plan, failure, agent, step; the goals are the cells of the bottom row, out of the way
FAILING = {
    "an agent leaves the board upward": (OPEN, [(0, 0), (1, 2)], ["U", "W"], Failure.ILLEGAL_MOVE, 0, 0),
    "an agent leaves the board to the right": (OPEN, [(0, 0), (1, 1)], ["DU", "RR"], Failure.ILLEGAL_MOVE, 1, 1),
    "an agent jumps": (OPEN, [(0, 0), (1, 1)], ["RW", "RJ"], Failure.ILLEGAL_MOVE, 1, 1),
    "an agent falls into a hole": (ONE_HOLE, [(0, 0), (0, 2)], ["RD", "DW"], Failure.HOLE, 0, 1),
    "two agents meet": (OPEN, [(0, 0), (0, 2)], ["R", "L"], Failure.VERTEX_CONFLICT, 0, 0),
    "an agent runs into one that waits": (OPEN, [(0, 0), (0, 2)], ["WW", "LL"], Failure.VERTEX_CONFLICT, 0, 1),
    "an agent runs into one whose plan has ended": (OPEN, [(0, 0), (0, 2)], ["R", "WL"], Failure.VERTEX_CONFLICT, 0, 1),
    "two agents exchange cells": (OPEN, [(0, 0), (0, 1)], ["R", "L"], Failure.SWAP_CONFLICT, 0, 0),
    "the second and third exchange cells": (
        OPEN, [(2, 0), (0, 0), (0, 1)], ["RU", "WR", "WL"], Failure.SWAP_CONFLICT, 1, 1,
    ),
    "leaving the board comes before a hole": (ONE_HOLE, [(0, 1), (1, 2)], ["D", "R"], Failure.ILLEGAL_MOVE, 1, 0),
    "a hole comes before a meeting": (ONE_HOLE, [(0, 0), (0, 2), (1, 0)], ["R", "L", "R"], Failure.HOLE, 2, 0),
    "a meeting comes before an exchange": (
        OPEN, [(0, 0), (0, 1), (1, 0)], ["R", "L", "U"], Failure.VERTEX_CONFLICT, 1, 0,
    ),
    "an earlier exchange comes before a later edge": (
        OPEN, [(0, 0), (0, 1)], ["RU", "LU"], Failure.SWAP_CONFLICT, 0, 0,
    ),
    "the second agent misses its goal": (OPEN, [(1, 0), (0, 1)], ["D", "DW"], Failure.GOAL_NOT_REACHED, 1, 2),
    "no agent moves": (OPEN, [(1, 0), (0, 1)], ["", ""], Failure.GOAL_NOT_REACHED, 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_names_its_agent_and_step(name):
    rows, starts, plan, *expected = FAILING[name]
    board = drawing(rows, starts, [(2, 0), (2, 1), (2, 2)][: len(starts)])
    result = one_verdict(board, as_moves(plan, 4))
    assert [result.failure, result.agent, result.step] == expected, picture(board)
    assert (result.makespan, result.sum_of_costs) == (-1, -1), picture(board)


def test_a_valid_plan_counts_a_return_to_the_goal_and_waits_before_it_but_none_after():
    board = drawing(OPEN, [(0, 0), (2, 2)], [(0, 1), (2, 1)])
    result = one_verdict(board, as_moves(["RDUWW", "WWL"], 6))
    assert (result.failure, result.agent, result.step) == (Failure.NONE, -1, -1), picture(board)
    assert (result.makespan, result.sum_of_costs, result.legal_steps) == (3, 6, 5), picture(board)
    assert result.at_goal.all(), picture(board)


def test_an_agent_that_stays_home_costs_nothing():
    board = drawing(OPEN, [(0, 0), (2, 2)], [(0, 0), (2, 1)])
    result = one_verdict(board, as_moves(["WW", "L"], 6))
    assert (result.makespan, result.sum_of_costs) == (1, 1), picture(board)


def test_at_goal_says_which_agents_were_home_when_the_plan_failed():
    board = drawing(OPEN, [(0, 0), (2, 2)], [(0, 1), (2, 1)])
    assert one_verdict(board, as_moves(["RU", "WL"], 6)).at_goal.tolist() == [True, False], picture(board)
    assert one_verdict(board, as_moves(["DW", "LW"], 6)).at_goal.tolist() == [False, True], picture(board)


def test_agents_may_follow_each_other():
    cells = np.array([[0, 0], [0, 1], [2, 2]])
    moved, failure, agent = one_step(np.zeros((3, 3), bool), cells, np.array([RIGHT, RIGHT, WAIT], np.int8))
    assert (moved.tolist(), failure, agent) == ([[0, 1], [0, 2], [2, 2]], Failure.NONE, -1)


def test_agents_may_rotate():
    square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    moved, failure, agent = one_step(np.zeros((3, 3), bool), square, np.array([RIGHT, DOWN, LEFT, UP], np.int8))
    assert (moved.tolist(), failure, agent) == (np.roll(square, -1, axis=0).tolist(), Failure.NONE, -1)


def test_an_agent_off_the_board_is_clipped_to_it():
    cells = np.array([[1, 1], [2, 0], [0, 0]])
    moved, failure, agent = one_step(np.zeros((3, 3), bool), cells, np.array([PAD, LEFT, JUMP], np.int8))
    assert (moved.tolist(), failure, agent) == (cells.tolist(), Failure.ILLEGAL_MOVE, 1)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.permutations(range(3)))
def test_the_order_of_agents_changes_only_who_is_named(seed, order):
    boards, moves = random_plans(seed, mixed_boards(seed, 500, 4, agents=3))
    shuffled = Board(boards.holes, boards.starts[:, order], boards.goals[:, order])
    straight, other = verdicts(boards, moves), verdicts(shuffled, moves[:, order])
    for field in ("failure", "step", "makespan", "sum_of_costs", "legal_steps"):
        assert_every(getattr(straight, field) == getattr(other, field), boards, moves=moves)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_padding_changes_no_verdict(seed):
    boards, moves = random_plans(seed, mixed_boards(seed, 500, 4, agents=3))
    longer = np.pad(moves, ((0, 0), (0, 0), (0, 5)), constant_values=PAD)
    short, long = verdicts(boards, moves), verdicts(boards, longer)
    for field in ("failure", "agent", "step", "makespan", "sum_of_costs", "legal_steps"):
        assert_every(getattr(short, field) == getattr(long, field), boards, moves=moves)


def folded(boards: Board, moves: np.ndarray) -> BoardVerdict:
    """The verdicts that `step`, called once for each joint move, adds up to."""
    count, _, horizon = moves.shape
    cells, goals = boards.starts, boards.goals
    failure, agent, legal = np.zeros(count, int), np.full(count, -1), np.zeros(count, int)
    arrivals = (cells != goals).any(axis=-1).astype(int)
    for time in range(horizon):
        moved, kind, who = map(np.asarray, steps(boards.holes, cells, moves[:, :, time]))
        agent = np.where((failure == 0) & (kind > 0), who, agent)
        failure = np.where(failure == 0, kind, failure)
        going = failure == 0
        legal += going
        cells = np.where(going[:, None, None], moved, cells)
        arrivals = np.where((cells != goals).any(axis=-1), time + 2, arrivals)
    home = (cells == goals).all(axis=-1)
    length = (moves != PAD).sum(axis=2).max(axis=1)
    short = (failure == 0) & ~home.all(axis=1)
    valid = (failure == 0) & ~short
    return BoardVerdict(
        failure=np.where(short, Failure.GOAL_NOT_REACHED, failure),
        agent=np.where(short, home.argmin(axis=1), agent),
        step=np.where(short, length, np.where(valid, -1, legal)),
        makespan=np.where(valid, arrivals.max(axis=1), -1),
        sum_of_costs=np.where(valid, arrivals.sum(axis=1), -1),
        legal_steps=np.minimum(legal, length),
        at_goal=home,
    )


def assert_same_verdicts(found: BoardVerdict, expected: BoardVerdict, boards: Board, moves: np.ndarray) -> None:
    for name in ("failure", "agent", "step", "makespan", "sum_of_costs", "legal_steps", "at_goal"):
        values, wanted = np.asarray(getattr(found, name)), np.asarray(getattr(expected, name))
        same = (values == wanted).all(axis=tuple(range(1, values.ndim)))
        assert_every(same, boards, **{name: values, "expected": wanted, "moves": moves})


FEW = [(3, 2), (4, 3), (5, 5), (PACKED_SIZE + 1, 3)]
CROWDS = [*FEW, *(pytest.param(*crowd, marks=pytest.mark.deep) for crowd in ((3, 4), (8, 2), (10, 5)))]


@pytest.mark.parametrize(("size", "agents"), CROWDS)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), spoilt=st.sampled_from([0.0, 0.01, 0.1]))
def test_the_verdict_is_what_single_steps_add_up_to(size, agents, seed, spoilt):
    boards, moves = random_plans(seed, mixed_boards(seed, 500, size, agents))
    rng = np.random.default_rng(seed)
    moves = np.where(rng.random(moves.shape) < spoilt, rng.integers(PAD, JUMP + 1, moves.shape), moves).astype(np.int8)
    assert_same_verdicts(verdicts(boards, moves), folded(boards, moves), boards, moves)


@pytest.mark.parametrize("code", [JUMP + 1, 127, PAD - 1, -128])
def test_a_code_that_is_no_move_is_an_illegal_move(code):
    board = drawing(OPEN, [(0, 0), (2, 2)], [(0, 0), (2, 2)])
    moves = np.array([[WAIT, PAD], [WAIT, code]], np.int8)
    result = one_verdict(board, moves)
    assert (result.failure, result.agent, result.step) == (Failure.ILLEGAL_MOVE, 1, 1), picture(board)
    assert one_step(board.holes, board.starts, moves[:, 1])[1:] == (Failure.ILLEGAL_MOVE, 1), picture(board)


@pytest.mark.parametrize("count", [0, 1, 3, BLOCK_PLANS, 2 * BLOCK_PLANS + 5])
def test_any_number_of_plans_is_verified_as_each_alone(count):
    boards, moves = random_plans(7, mixed_boards(7, count, 4))
    assert_same_verdicts(verify(boards, moves), verdicts(boards, moves), boards, moves)


@pytest.mark.parametrize("horizon", [0, 1, 7, 9, 40])
def test_plans_of_any_length_are_verified(horizon):
    boards, moves = random_plans(8, mixed_boards(8, 100, 4))
    width = max(horizon, STEPS) - STEPS
    moves = np.pad(moves, ((0, 0), (0, 0), (width, 0)), constant_values=PAD)[..., :horizon]
    assert_same_verdicts(verify(boards, moves), verdicts(boards, moves), boards, moves)


def test_plans_of_like_length_share_a_program():
    boards, moves = random_plans(9, mixed_boards(9, 300, 4))
    verify(boards, moves)
    compiled = _judge_plans._cache_size()
    for count, horizon in ((300, 8), (7, 8), (300, 5), (100, 1)):
        verify(jax.tree.map(lambda field, count=count: field[:count], boards), moves[:count, :, :horizon])
    assert _judge_plans._cache_size() == compiled
