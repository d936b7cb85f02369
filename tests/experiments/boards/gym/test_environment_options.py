"""Arguments of environments: each is used, or refused with what to do; and boards of one's own."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import MAPS, generate_random_map
from gymnasium.utils.env_checker import check_env

from lakewright.core_jax.lake import reset_to, step_env
from lakewright.core_jax.rows import Row
from lakewright.experiments.boards.episodes.episode import BoardEpisode
from lakewright.experiments.boards.episodes.pools import board_pool, pool_rows, read_board
from lakewright.experiments.boards.gym import LakeParallelEnv, TeamEnv, TeamVectorEnv
from tests.support.deep import keep_quick
from tests.support.refusals import refused

SMALL = {"size": 4, "agents": 2, "hole_ratio": 0.2, "boards": 16}
SWAP = Row("swap", 3, 2, ["...", "...", "HHH"], [(0, 0), (0, 2)], [(0, 2), (0, 0)])


@pytest.mark.parametrize("agents", keep_quick([1, 2, 3], [2]))
def test_an_episode_is_step_for_step_that_of_the_core(agents):
    pool = board_pool(size=4, agents=agents, hole_ratio=0.2, wait_ratio=0.0, boards=8, step_limit=4)
    step, rng = jax.jit(step_env), np.random.default_rng(agents)
    episode, kinds = BoardEpisode(pool, None), set()
    for board in [*range(pool.boards)] * 8:
        seen, _ = episode.begin(board)
        expected, state = reset_to(jax.tree.map(lambda field, board=board: field[board], pool.params.pool))
        for _ in range(6):
            for name in ("planes", "positions", "goals", "time"):
                found, wanted = np.asarray(getattr(seen, name)), np.asarray(getattr(expected, name))
                assert found.dtype == wanted.dtype, name
                assert (found == wanted).all(), name
            moves = np.asarray(rng.choice([-1, 0, 1, 2, 3, 4, 5], agents, p=[0.04, *[0.184] * 5, 0.04]), np.int32)
            seen, reward, terminated, truncated, info = episode.move(moves)
            expected, state, paid, _, told = step(state, moves, pool.params)
            assert (reward, terminated, truncated) == (float(paid), bool(told["terminated"]), bool(told["truncated"]))
            assert (info["failure"], info["agent"]) == (int(told["failure"]), int(told["agent"]))
            assert (info["at_goal"] == np.asarray(told["at_goal"])).all()
            kinds.add(info["failure"])
    assert kinds >= ({0, 2, 3} if agents == 1 else {0, 2, 3, 4})


@pytest.mark.parametrize("make", [TeamEnv, LakeParallelEnv, lambda **given: TeamVectorEnv(2, **given)])
def test_options_of_reset_that_nobody_knows_are_refused(make):
    env = make(**SMALL)
    with refused("options: unknown 'bord'"):
        env.reset(options={"bord": 3})
    for board in (True, 1.5, -1, 16, "3"):
        with refused("options: board", f"{board!r}"):
            env.reset(options={"board": board})


def test_the_vector_environment_begins_on_the_boards_that_are_named():
    pool, many = board_pool(**SMALL), TeamVectorEnv(3, **SMALL)
    for board, expected in ((5, [5, 5, 5]), ([1, 0, 15], [1, 0, 15]), (np.array([2, 2, 3]), [2, 2, 3])):
        seen, _ = many.reset(options={"board": board})
        assert (seen["goals"] == pool.params.pool.goals[expected]).all()
        assert (seen["positions"] == pool.params.pool.starts[expected]).all()
    with refused(2, 3):
        many.reset(options={"board": [1, 2]})


def test_a_mask_of_the_vector_environment_resets_some_and_the_others_go_on():
    many = TeamVectorEnv(4, **SMALL)
    mask = np.array([True, False, True, False])
    with refused("reset_mask"):
        many.reset(options={"reset_mask": mask})
    many.reset(seed=1)
    before = many.step(np.full((4, 2), 4))[0]
    after, _ = many.reset(options={"reset_mask": mask, "board": 7})
    pool = board_pool(**SMALL).params.pool
    assert after["time"].tolist() == [0, 1, 0, 1]
    assert (after["positions"][mask] == pool.starts[7]).all()
    for name, value in after.items():
        assert (value[~mask] == before[name][~mask]).all(), name
    assert many.step(np.full((4, 2), 4))[0]["time"].tolist() == [1, 2, 1, 2]
    for wrong in (np.zeros(4, bool), np.ones(3, bool), [0, 1, 1, 1], True):
        with refused("reset_mask"):
            many.reset(options={"reset_mask": wrong})


@pytest.mark.parametrize("seed", [[1, 2], -1, 2**32, 1.5, True])
def test_seeds_that_the_vector_environment_cannot_use_are_refused(seed):
    with refused(0, 4294967295):
        TeamVectorEnv(2, **SMALL).reset(seed=seed)


def test_actions_of_another_shape_or_type_are_refused():
    env, many = TeamEnv(**SMALL), TeamVectorEnv(2, **SMALL)
    env.reset(seed=0)
    many.reset(seed=0)
    for action in ([1], [[1, 2]], [0.5, 1.0], ["U", "D"], None):
        with refused("step:", "action"):
            env.step(action)
    with refused("[2, 2]"):
        many.step(np.zeros((2, 3), int))


def test_after_the_end_a_step_of_pettingzoo_returns_five_empty_dictionaries():
    env = LakeParallelEnv(**SMALL, step_limit=1)
    env.reset(seed=0)
    observations, *_ = env.step(dict.fromkeys(env.agents, 4))
    assert set(observations) == set(env.possible_agents)
    assert env.agents == []
    for actions in ({}, {"agent_0": 4}):
        assert env.step(actions) == ({}, {}, {}, {}, {})
    env.reset(seed=1)
    with refused("unknown agent 'agent_2'"):
        env.step({"agent_2": 1})
    assert set(env.step({})[0]) == set(env.possible_agents), "of agents that are not named the move is to wait"


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(
    "form", [list, lambda lines: np.asarray(lines, "c"), lambda lines: [list(line) for line in lines]]
)
def test_a_map_of_frozen_lake_is_played_with_its_shortest_path(name, form):
    env = gymnasium.make("lakewright/Lake-v0", desc=form(MAPS[name]), render_mode="ansi")
    _, info = env.reset(seed=0)
    assert (info["makespan"], info["board"]) == ({"4x4": 6, "8x8": 14}[name], 0)
    lines = env.unwrapped.render().splitlines()
    assert [line.replace("a", "S").replace("A", "G").replace(".", "F") for line in lines] == MAPS[name]
    row = pool_rows(desc=form(MAPS[name]))[0]
    for move in row.plan[0]:
        _, reward, terminated, _, _ = env.step([["U", "D", "L", "R", "W"].index(move)])
    assert (reward, terminated) == (1, True)


def test_random_maps_of_frozen_lake_pass_gymnasiums_checker():
    env = gymnasium.make("lakewright/Lake-v0", desc=generate_random_map(size=6, seed=1), render_mode="ansi").unwrapped
    check_env(env)
    assert env.observation_space["planes"].shape == (6, 6, 3)


def test_a_row_is_played_by_all_its_agents_in_every_environment():
    fields = {"id": "swap", "size": 3, "agents": 2, "grid": SWAP.grid, "starts": SWAP.starts, "goals": SWAP.goals}
    for desc in (SWAP, fields):
        _, info = TeamEnv(desc=desc).reset()
        assert (info["makespan"], info["sum_of_costs"]) == (4, 6)
    assert LakeParallelEnv(desc=SWAP).reset()[1]["agent_1"]["makespan"] == 4
    seen, _ = TeamVectorEnv(3, desc=SWAP, step_limit=5).reset(seed=0)
    assert (seen["positions"] == SWAP.starts).all()


def test_a_rectangle_is_padded_with_holes():
    row = read_board(["SFF", "HHG"])
    assert (row.grid, row.starts, row.goals) == (["...", "HH.", "HHH"], [(0, 0)], [(1, 2)])
    assert read_board(["S", "F", "G"]).grid == [".HH", ".HH", ".HH"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"desc": ["SFG", "FF"]}, ["desc[1]", "2 cells", "desc[0]", 3]),
        ({"desc": ["SXG"]}, ["desc[0]", "letter 'X'", "S, F, H"]),
        ({"desc": ["SFF"]}, ["desc", "0 cells G"]),
        ({"desc": ["SSG"]}, ["desc", "2 cells S"]),
        ({"desc": "SFFG"}, ["desc", "'SFFG'"]),
        ({"desc": []}, ["desc", "[]"]),
        ({"desc": [3, 4]}, ["desc[0]", "3"]),
        ({"desc": [b"S\xff"]}, ["desc[0]", "b'S"]),
        ({"desc": ["SHG"]}, ["desc:"]),
        ({"desc": ["SG"], "size": 4}, ["lake: desc", "size = 4"]),
        ({"desc": {"grid": ["."]}}, ["desc: field 'size'"]),
        ({"desc": {"grid": ["."], "wide": 1}}, ["desc:", "field 'wide'"]),
        ({"desc": ["SG"], "is_slippery": False}, ["lake: desc", "is_slippery = False"]),
        ({"is_slippery": False}, ["lake:", "field 'is_slippery' = False"]),
    ],
)
def test_boards_of_ones_own_that_cannot_be_are_refused_with_what_to_do(options, message):
    with refused(*message):
        TeamEnv(**options)


def test_one_agent_alone_needs_no_wait_ratio():
    assert TeamEnv(size=4, agents=1, boards=4).reset(seed=0)[1]["wait_required"] is False
