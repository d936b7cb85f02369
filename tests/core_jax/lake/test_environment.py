"""The lake as an environment: certified plans end at home, random play agrees with the verdict."""

import functools
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.lake import EnvParams, reset, step, verify
from lakewright.core_jax.lake.environment import BoardObservation, EnvState, observe, reset_to, step_env
from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import DOWN, JUMP, LEFT, PAD, RIGHT, UP, WAIT, Board, Failure
from tests.support.boards.sample_boards import (
    as_lists,
    assert_every,
    batch,
    drawing,
    each,
    in_numpy,
    mixed_boards,
    picture,
)

OPEN = ["...", "...", "..."]
BOARD = drawing(["...", ".H.", "..."], [(0, 0), (2, 2)], [(0, 2), (2, 0)])
LIMIT = 6
GUIDE = Path(__file__).parents[3] / "docs" / "simulator.md"
one_step = in_numpy(step_env)
begin_on = in_numpy(reset_to)


def params_of(boards: Board, step_limit: int = LIMIT) -> EnvParams:
    return EnvParams(jax.tree.map(jnp.asarray, boards), step_limit)


def begun(board: Board) -> EnvState:
    return begin_on(board)[1]


def play(boards: Board, moves: np.ndarray, params: EnvParams) -> tuple[EnvState, list]:
    """Plays moves [B, K, T] in vmapped environments: the last states, and rewards, dones, infos [T, B, ...]."""
    return jax.tree.map(np.asarray, _play(boards, moves, params))


@jax.jit
def _play(boards: Board, moves: jax.Array, params: EnvParams) -> tuple[EnvState, list]:

    def one(state, action):
        _, state, *rest = jax.vmap(step_env, (0, 0, None))(state, action, params)
        return state, rest

    _, state = jax.vmap(reset_to)(boards)
    return jax.lax.scan(one, state, jnp.moveaxis(moves, 2, 0))


@functools.cache
def certified() -> tuple[Board, np.ndarray, np.ndarray]:
    """Solvable boards, an optimal plan of each, int8 [B, 2, T], and when its last agent arrives."""
    boards = mixed_boards(0, 500, 5)
    labels = solve(jax.tree.map(jnp.asarray, boards))
    keep = np.asarray(labels.solvable)
    boards, moves = jax.tree.map(lambda field: np.asarray(field)[keep], (boards, labels.moves))
    return boards, moves, np.asarray(verify(boards, moves).makespan)


def test_a_certified_plan_ends_at_home_at_its_makespan():
    boards, moves, makespan = certified()
    last, (rewards, dones, infos) = play(boards, moves, params_of(boards, 100))
    assert_every(last.done & (last.positions == boards.goals).all(axis=(1, 2)), boards, moves=moves)
    assert_every(np.argmax(dones, axis=0) + 1 == makespan, boards, moves=moves, makespan=makespan)
    assert_every(last.time == makespan, boards, moves=moves, makespan=makespan)
    assert_every(np.asarray(rewards).sum(axis=0) == 1, boards, moves=moves)
    assert_every(np.argmax(rewards, axis=0) + 1 == makespan, boards, moves=moves)
    assert_every((infos["failure"] == Failure.NONE).all(axis=0), boards, moves=moves)
    assert_every(np.asarray(infos["terminated"]).sum(axis=0) == 1, boards, moves=moves)


@pytest.mark.parametrize(("size", "agents"), [(3, 2), (4, 3), pytest.param(6, 5, marks=pytest.mark.deep)])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_play_ends_as_the_verdict_says(size, agents, seed):
    boards = mixed_boards(seed, 400, size, agents)
    rng = np.random.default_rng(seed)
    moves = rng.choice([UP, DOWN, LEFT, RIGHT, WAIT, WAIT, WAIT, PAD], (400, agents, LIMIT + 2)).astype(np.int8)
    last, (rewards, _, infos) = play(boards, moves, params_of(boards))
    time = np.asarray(last.time)
    until_end = np.where(np.arange(moves.shape[2]) < time[:, None, None], moves, PAD).astype(np.int8)
    expected = verify(boards, until_end)
    truth = np.asarray(expected.failure)
    solved, away = truth == Failure.NONE, truth == Failure.GOAL_NOT_REACHED
    shown = {"moves": until_end, "failure": truth}
    assert_every(np.asarray(rewards).sum(axis=0) == solved, boards, **shown)
    assert_every(np.asarray(infos["truncated"]).any(axis=0) == away, boards, **shown)
    assert_every(np.asarray(infos["terminated"]).any(axis=0) == ~away, boards, **shown)
    assert_every(np.asarray(infos["failure"]).max(axis=0) == np.where(away, 0, truth), boards, **shown)
    broken = ~solved & ~away
    assert_every(np.where(broken, np.asarray(infos["agent"]).max(axis=0) == expected.agent, True), boards, **shown)
    assert_every(np.where(broken, time - 1 == expected.step, True), boards, **shown)
    assert_every(((last.positions == boards.goals).all(axis=2) == expected.at_goal).all(axis=1), boards, **shown)


def test_an_episode_is_cut_at_the_step_limit_and_that_is_no_termination():
    state, params = begun(BOARD), params_of(batch([BOARD]), step_limit=2)
    _, state, _, done, info = one_step(state, jnp.array([WAIT, PAD]), params)
    assert not done, picture(BOARD)
    _, state, reward, done, info = one_step(state, jnp.array([WAIT, WAIT]), params)
    assert done, picture(BOARD)
    assert (info["truncated"], info["terminated"], info["discount"], reward) == (True, False, 1, 0), picture(BOARD)


def test_coming_home_at_the_step_limit_is_a_termination():
    board = drawing(OPEN, [(0, 0), (2, 2)], [(0, 1), (2, 2)])
    *_, reward, done, info = one_step(begun(board), jnp.array([RIGHT, WAIT]), params_of(batch([board]), step_limit=1))
    assert (reward, done, info["terminated"], info["truncated"], info["discount"]) == (1, True, True, False, 0)


FAILING = {
    "leaving the board": ([(0, 0), (2, 2)], [UP, WAIT], Failure.ILLEGAL_MOVE, 0),
    "a jump": ([(0, 0), (2, 2)], [WAIT, JUMP], Failure.ILLEGAL_MOVE, 1),
    "an action that does not exist": ([(0, 0), (2, 2)], [WAIT, 300], Failure.ILLEGAL_MOVE, 1),
    "falling into a hole": ([(0, 1), (2, 2)], [DOWN, WAIT], Failure.HOLE, 0),
    "meeting": ([(0, 0), (0, 2)], [RIGHT, LEFT], Failure.VERTEX_CONFLICT, 0),
    "exchanging cells": ([(0, 0), (0, 1)], [RIGHT, LEFT], Failure.SWAP_CONFLICT, 0),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_broken_rule_ends_the_episode_where_the_agents_stand(name):
    starts, action, failure, agent = FAILING[name]
    board = BOARD.replace(starts=np.array(starts, np.int32))
    observation, state, reward, done, info = one_step(begun(board), jnp.array(action), params_of(batch([board])))
    assert (done, info["terminated"], info["truncated"], reward) == (True, True, False, 0), picture(board)
    assert (info["failure"], info["agent"], info["discount"]) == (failure, agent, 0), picture(board)
    assert state.positions.tolist() == board.starts.tolist(), picture(board)
    assert observation.positions.tolist() == board.starts.tolist(), picture(board)


def test_a_done_state_stays_as_it_is_for_no_reward():
    params = params_of(batch([BOARD]))
    _, ended, *_ = one_step(begun(BOARD), jnp.array([UP, WAIT]), params)
    _, state, reward, done, info = one_step(ended, jnp.array([RIGHT, WAIT]), params)
    assert jax.tree.all(jax.tree.map(np.array_equal, state, ended)), picture(BOARD)
    assert (reward, done, info["failure"], info["agent"]) == (0, True, Failure.NONE, -1), picture(BOARD)
    assert not info["terminated"], "it ended before"
    assert not info["truncated"], "it ended before"


@pytest.mark.parametrize(("size", "agents"), [(3, 1), (5, 2), (6, 5)])
def test_the_planes_are_the_holes_then_the_agents_then_their_goals(size, agents):
    boards = mixed_boards(3, 50, size, agents)
    found, _ = jax.jit(jax.vmap(reset_to))(boards)
    for board, planes in zip(each(boards), np.asarray(found.planes), strict=True):
        rows, starts, goals = as_lists(board)
        marks = [{(r, c) for r in range(size) for c in range(size) if rows[r][c] == "H"}]
        marks += [{cell} for cell in (*starts, *goals)]
        expected = [[[(r, c) in plane for plane in marks] for c in range(size)] for r in range(size)]
        assert planes.tolist() == expected, picture(board)
    assert_every((found.positions == boards.starts).all(axis=(1, 2)), boards, positions=found.positions)
    assert_every((found.goals == boards.goals).all(axis=(1, 2)), boards, goals=found.goals)
    assert_every(found.time == 0, boards, time=found.time)


@functools.partial(jax.jit, static_argnums=2)
def training_loop(key: jax.Array, params: EnvParams, environments: int) -> tuple:
    """Random play with automatic resets: what each of 20 steps began from and returned, [20, B, ...]."""
    reset_key, key = jax.random.split(key)
    _, state = jax.vmap(reset, (0, None))(jax.random.split(reset_key, environments), params)

    def one(state, key):
        action_key, step_key = jax.random.split(key)
        action = jax.random.randint(action_key, state.positions.shape[:2], 0, 5)
        keys = jax.random.split(step_key, environments)
        after = jax.vmap(step, (0, 0, 0, None))(keys, state, action, params)
        return after[1], (state, action, *after)

    return jax.lax.scan(one, state, jax.random.split(key, 20))[1]


def test_thousands_of_environments_reset_themselves():
    boards, *_ = certified()
    params = params_of(boards)
    played = jax.tree.map(np.asarray, training_loop(jax.random.key(1), params, 3000))
    before, action, observation, after, reward, done, info = played
    assert done.any(axis=0).all(), "20 steps are more than the step limit"
    assert not np.asarray(after.done).any(), "a state that comes back has always begun anew"
    fresh = (after.time == 0) & (after.positions == after.board.starts).all(axis=(2, 3))
    assert np.array_equal(after.time == 0, done)
    assert np.asarray(fresh)[done].all()
    same_board = (after.board.holes == before.board.holes).all(axis=(2, 3))
    assert np.asarray(same_board)[~done].all()
    plain = jax.jit(jax.vmap(jax.vmap(step_env, (0, 0, None)), (0, 0, None)))(before, action, params)
    assert jax.tree.all(jax.tree.map(np.array_equal, info["final_observation"], plain[0])), "as without a reset"
    assert jax.tree.all(jax.tree.map(np.array_equal, (reward, done), plain[2:4])), "as without a reset"
    shown = jax.jit(jax.vmap(jax.vmap(observe)))(after)
    assert jax.tree.all(jax.tree.map(np.array_equal, observation, shown)), "the observation is that of the new state"


def test_new_episodes_come_from_all_of_the_pool_and_from_nowhere_else():
    boards = jax.tree.map(lambda field: field[:10], certified()[0])
    keys = jax.random.split(jax.random.key(2), 2000)
    _, state = jax.jit(jax.vmap(reset, (0, None)))(keys, params_of(boards))
    fields = ("holes", "starts", "goals")
    found = [b"".join(np.asarray(getattr(board, name)).tobytes() for name in fields) for board in each(state.board)]
    pool = [b"".join(np.asarray(getattr(board, name)).tobytes() for name in fields) for board in each(boards)]
    assert set(found) == set(pool)
    assert min(found.count(board) for board in pool) > 2000 / 10 / 2, "each is as likely as the others"


def test_steps_pools_and_limits_share_one_program():
    traces = []

    @jax.jit
    def counted(key, state, action, params):
        traces.append(1)
        return step(key, state, action, params)

    begin = jax.jit(reset)
    boards = jax.tree.map(lambda field: field[:8], certified()[0])
    keys = jax.random.split(jax.random.key(3), 12)
    for limit in (5, 9):
        params = params_of(jax.tree.map(np.flip, boards) if limit == 9 else boards, limit)
        _, state = begin(keys[limit - 5], params)
        for key in keys[limit - 4 : limit - 1]:
            _, state, *_ = counted(key, state, jnp.array([WAIT, RIGHT]), params)
    assert len(traces) == 1


def test_the_guides_example_runs():
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL).group(1)
    names: dict = {}
    exec(code, names)
    rewards = np.asarray(names["rewards"])
    assert rewards.shape == (100, 128)
    assert set(np.unique(rewards)) == {0.0, 1.0}, "some random agents come home"


def test_a_joint_move_has_one_integer_an_agent():
    state, params = begun(BOARD), params_of(batch([BOARD]))
    for action in (jnp.array([WAIT]), jnp.array([WAIT, WAIT, WAIT]), jnp.array([1.0, 2.0])):
        with pytest.raises(AssertionError):
            one_step(state, action, params)
    assert isinstance(one_step(state, jnp.array([1, 4], jnp.uint8), params)[0], BoardObservation)
