"""The lake in Gymnasium and PettingZoo: their own checkers, and the core's simulator beside it."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from pettingzoo.test import parallel_api_test, parallel_seed_test

import lakewright.experiments.boards.gym  # noqa: F401, it registers the environment
from lakewright.core_jax.lake import verify
from lakewright.core_jax.types import DELTAS, FAILURE_NAMES, Board, Failure
from lakewright.experiments.boards.episodes.pools import board_pool
from lakewright.experiments.boards.gym import LakeParallelEnv, TeamEnv
from tests.support.refusals import refused

SMALL = {"size": 4, "agents": 2, "hole_ratio": 0.2, "boards": 16}


@pytest.fixture(scope="module")
def pool():
    return board_pool(**SMALL)


def team(**options) -> gymnasium.Env:
    return gymnasium.make("lakewright/Lake-v0", **SMALL, **options)


def certified(pool, board: int) -> np.ndarray:
    """The joint moves of the board's certified plan, [T, K]; ended agents wait."""
    moves = np.asarray(pool.labels.moves[board]).T
    return np.where(moves < 0, 4, moves)[: int(pool.labels.makespan[board]) + 8]


@pytest.mark.parametrize("render_mode", ["rgb_array", "ansi"])
def test_gymnasium_finds_nothing_wrong_with_the_environment_of_a_team(render_mode):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        check_env(team(render_mode=render_mode).unwrapped)
    assert [str(warning.message) for warning in found] == []


def test_pettingzoo_finds_nothing_wrong_with_the_parallel_environment():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        parallel_api_test(LakeParallelEnv(**SMALL), num_cycles=200)
        parallel_seed_test(lambda: LakeParallelEnv(**SMALL), num_cycles=50)
    assert [str(warning.message) for warning in found] == []


def test_the_certified_plan_ends_every_board_of_the_pool_with_a_reward(pool):
    env = team()
    for board in range(pool.boards):
        _, info = env.reset(options={"board": board})
        assert info["makespan"] == int(pool.labels.makespan[board])
        rewards, terminated = [], False
        for move in certified(pool, board):
            _, reward, terminated, truncated, told = env.step(move)
            rewards.append(reward)
            if terminated or truncated:
                break
        assert terminated, f"board {board}: its certified plan does not end it"
        assert sum(rewards) == 1
        assert told["failure_name"] == FAILURE_NAMES[told["failure"]] == "none"
        assert len(rewards) >= info["makespan"], f"board {board} is solved faster than the optimum"


def test_random_play_ends_as_the_verdict_on_its_plan_says(pool):
    env, rng = team(), np.random.default_rng(0)
    for board in range(pool.boards):
        env.reset(options={"board": board})
        moves, done = [], False
        while not done:
            moves.append(rng.integers(5, size=2))
            _, reward, terminated, truncated, info = env.step(moves[-1])
            done = terminated or truncated
        one = Board(
            *(
                np.asarray(field[board])[None]
                for field in (pool.params.pool.holes, pool.params.pool.starts, pool.params.pool.goals)
            )
        )
        found = verify(one, np.array(moves, np.int8).T[None])
        failure = Failure(int(found.failure[0]))
        if truncated:
            assert failure == Failure.GOAL_NOT_REACHED, f"board {board}: {moves}"
        else:
            assert failure == Failure(info["failure"]), f"board {board}: {moves}"
            assert (failure == Failure.NONE) == (reward == 1)


def test_no_array_is_shared_between_steps():
    env = team()
    before, _ = env.reset(seed=1)
    kept = {name: value.copy() for name, value in before.items()}
    after, *_ = env.step(np.array([4, 4]))
    for name, value in after.items():
        assert not np.shares_memory(value, before[name]), name
        value[...] = 0
    assert data_equivalence(before, kept)


def test_the_vector_environment_plays_like_its_parts_and_begins_anew_by_itself():
    many = gymnasium.make_vec("lakewright/Lake-v0", num_envs=8, **SMALL)
    seen, _ = many.reset(seed=3)
    assert many.observation_space.contains(seen)
    rng, ended = np.random.default_rng(1), 0
    for _ in range(60):
        moves = rng.integers(5, size=(8, 2))
        before = seen
        seen, rewards, terminated, truncated, info = many.step(moves)
        assert many.observation_space.contains(seen)
        done = terminated | truncated
        assert not (terminated & truncated).any()
        for place in range(8):
            last = {name: (info["final_obs"] if done[place] else seen)[name][place] for name in seen}
            moved = before["positions"][place] + np.array(DELTAS)[moves[place]]
            assert info["failure_name"][place] == FAILURE_NAMES[info["failure"][place]]
            if info["failure"][place]:
                moved = before["positions"][place]
            assert (last["positions"] == moved).all(), f"environment {place}: {moves[place]}"
            assert rewards[place] == (terminated[place] and not info["failure"][place])
        if done.any():
            assert (info["_final_obs"] == done).all()
            assert (seen["time"][done] == 0).all()
            ended += int(done.sum())
    assert ended > 8, "hardly an episode ended"


def test_the_vector_environment_repeats_itself_for_a_seed():
    played = []
    for _ in range(2):
        many = gymnasium.make_vec("lakewright/Lake-v0", num_envs=4, **SMALL)
        many.reset(seed=5)
        played.append([many.step(np.full((4, 2), move % 5))[0]["positions"] for move in range(30)])
    assert (np.array(played[0]) == np.array(played[1])).all()


def test_agents_see_themselves_apart_from_the_others_and_share_the_reward(pool):
    env = LakeParallelEnv(**SMALL)
    seen, infos = env.reset(options={"board": 3})
    assert infos["agent_0"]["sum_of_costs"] == int(pool.labels.sum_of_costs[3])
    for number, name in enumerate(env.possible_agents):
        planes = seen[name]["planes"]
        mine, other = np.argwhere(planes[..., 1]).tolist(), np.argwhere(planes[..., 3]).tolist()
        assert mine == [pool.params.pool.starts[3, number].tolist()]
        assert other == [pool.params.pool.starts[3, 1 - number].tolist()]
        assert seen[name]["goal"].tolist() == pool.params.pool.goals[3, number].tolist()
    for move in certified(pool, 3):
        _, rewards, terminated, _, _ = env.step(dict(zip(env.possible_agents, move.tolist(), strict=True)))
        if not env.agents:
            break
    assert rewards == {"agent_0": 1.0, "agent_1": 1.0}
    assert terminated == {"agent_0": True, "agent_1": True}


def test_boards_are_drawn_as_letters_and_as_pixels(pool):
    env = team(render_mode="ansi")
    env.reset(options={"board": 0})
    lines = env.render().splitlines()
    assert len(lines) == 4
    starts, goals = np.asarray(pool.params.pool.starts[0]), np.asarray(pool.params.pool.goals[0])
    assert [lines[row][column] for row, column in starts] == ["a", "b"]
    assert [lines[row][column] for row, column in goals] == ["A", "B"]
    env = team(render_mode="rgb_array")
    env.reset(options={"board": 0})
    picture = env.render()
    assert picture.shape == (96, 96, 3)
    row, column = starts[0]
    hole = np.argwhere(np.asarray(pool.params.pool.holes[0]))[0]
    assert picture[24 * hole[0] + 12, 24 * hole[1] + 12].tolist() == [44, 62, 80]
    assert picture[24 * row + 12, 24 * column + 12].tolist() == [0, 114, 178]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 2}, ["map size 2"]),
        ({"size": 3, "agents": 5}, ["agents"]),
        ({"render_mode": "human"}, ["ansi, rgb_array"]),
        ({"step_limit": -1}, ["lake: step_limit: -1", "expected `int` >= 0"]),
        ({"width": 4}, ["lake:", "field 'width' = 4", "size, agents"]),
    ],
)
def test_options_that_cannot_be_are_refused_with_what_to_do(options, message):
    with refused(*message):
        TeamEnv(**{"boards": 4, **options})


def test_a_board_beyond_the_pool_and_a_step_before_the_first_reset_are_refused():
    env = TeamEnv(**SMALL)
    with refused("call reset first"):
        env.step(np.array([0, 0]))
    with refused("board", 16):
        env.reset(options={"board": 16})
