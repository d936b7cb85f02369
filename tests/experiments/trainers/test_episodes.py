"""Gymnasium's environments and OpenEnv's clients play the problems of a folder: pinned, recorded once, and refused."""

import asyncio
import functools
import runpy
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from lakewright.engineer import Verdict
from lakewright.experiments.trainers.episodes import EpisodeBook
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.gymnasium import EngineerEnv
from lakewright.experiments.trainers.openenv import AsyncEngineerClient, EngineerClient
from tests.support.processes.commands import HOUSE
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, read_groups, state_of

EXAMPLES = HOUSE / "docs" / "examples"
SPACE = gymnasium.spaces.Box(0, 1, (1,), np.float32)


class Guessing(gymnasium.Env):
    """Two steps of any action; the reward of the last is what the action was."""

    observation_space, action_space = SPACE, SPACE

    def __init__(self, problem):
        self.problem = problem

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 2
        return self.np_random.random(1, np.float32), {}

    def step(self, action):
        self.left -= 1
        return self.np_random.random(1, np.float32), float(action[0]) * (not self.left), not self.left, False, {}


def report(total, info):
    return Verdict(True, total) if total > 0.5 else Verdict(False, total, "wrong")


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", teacher="random", settings={"fewest_answers": 1})


def assert_whole(path, groups, size):
    found = read_groups(path)
    assert (len(found), {len(lines) for lines in found.values()}) == (groups, {size})
    assert all(len({(line.version, line.key) for line in lines}) == 1 for lines in found.values())


SPAWNED = functools.partial(AsyncVectorEnv, context="spawn")


@pytest.mark.parametrize("vector", [SyncVectorEnv, pytest.param(SPAWNED, marks=pytest.mark.deep)])
def test_no_group_of_vector_environments_spans_two_versions(folder, vector):
    maker = functools.partial(EngineerEnv, folder.path, Guessing, report, count=3, episodes=4)
    environments = vector([functools.partial(maker, index=index) for index in range(3)])
    _, info = environments.reset(seed=0)
    assert info["place"].tolist() == [0, 1, 2]
    actions = np.linspace(0, 1, 3, dtype=np.float32)[:, None]
    for step in range(1, 25):  # an episode and the reset after it take three steps
        environments.step(actions)
        if step % 6 == 0:  # two episodes, half of a group
            folder.next(step=step)
    environments.close()
    assert folder.status().version >= 2
    assert_whole(folder.path, 6, 4)
    assert {line.version for lines in read_groups(folder.path).values() for line in lines} == {0, 1}
    assert {line.tokens for lines in read_groups(folder.path).values() for line in lines} == {2}


def test_gymnasium_finds_the_environment_sound(folder):
    check_env(EngineerEnv(folder.path, Guessing, report), skip_render_check=True)
    assert read_groups(folder.path)["episodes 0 0"][0].failure in ("", "wrong")


def test_an_episode_is_begun_again_until_it_ends_and_counts_once_after_a_restart(folder):
    for _ in range(2):  # a trainer, and the same one started again
        environment = EngineerEnv(folder.path, Guessing, report)
        first, info = environment.reset()
        environment.step([1.0])
        again, _ = environment.reset(seed=5)
        assert (info["place"], first.tolist()) == (0, again.tolist())
        for _ in range(2):
            environment.step([1.0])
        assert environment.reset()[1]["place"] == 1
    assert_whole(folder.path, 1, 1)
    assert len((folder.path / "outcomes.jsonl").read_text().splitlines()) == 2


def test_a_trainer_that_goes_on_gives_the_episodes_it_had(folder):
    book = EpisodeBook(folder.path, index=1, count=4, episodes=2, position=3)
    assert (book.place, book.find_problem()) == (5, EpisodeBook(folder.path, index=5, count=6).find_problem())
    assert book.end_episode(book.find_problem().answer, 1).valid
    assert (book.position, book.place) == (4, 9)


def test_what_cannot_be_played_is_refused(folder):
    with refused("index is 2, count 2, episodes 1, position 0"):
        EpisodeBook(folder.path, index=2, count=2)
    environment = EngineerEnv(folder.path, Guessing, report)
    environment.reset()
    environment.step([1.0])
    environment.step([1.0])
    environment._make = lambda problem: SimpleNamespace(observation_space=SPACE, action_space=None)
    with refused("place 1: spaces"):
        environment.reset()
    book = EpisodeBook(folder.path, seed=1)
    with refused("reward 0 is nan"):
        book.end_episode(Verdict(True, float("nan")), 1)
    assert book.position == 0


class Server:
    """Stands in for OpenEnv's client: says what reset was given, and rewards what a step brings."""

    def reset(self, **arguments):
        return SimpleNamespace(observation=arguments, reward=None, done=False)

    def step(self, action):
        return SimpleNamespace(observation={}, reward=action, done=action > 0)


def test_openenv_is_reset_with_the_arguments_of_the_present_design(folder):
    client = EngineerClient(Server(), folder.path, report, episodes=2)
    with refused("step: ", "reset"):
        client.step(1)
    problem = client.book.find_problem()
    given = client.reset().observation
    assert given["stratum"] == problem.cell.stratum
    assert type(given["carry"]) is bool
    assert set(given) == {"stratum", "terms", "carry", "seed"}
    client.step(0)
    client.step(1.0)
    folder.next(step=1)
    assert client.reset().observation == given
    client.step(1.0)
    assert client.reset().observation != given
    assert client.book.find_problem().version == 1
    assert_whole(folder.path, 1, 2)
    assert [line.tokens for line in read_groups(folder.path)["episodes 0 0"]] == [2, 1]
    named = EngineerClient(Server(), folder.path, arguments=lambda problem: {"text": problem.prompt})
    assert named.reset().observation == {"text": problem.prompt}


class AsyncServer(Server):
    """The same, of an asynchronous client, whose answers take a turn of the event loop."""

    async def reset(self, **arguments):
        await asyncio.sleep(0)
        return super().reset(**arguments)

    async def step(self, action):
        await asyncio.sleep(0)
        return super().step(action)


def test_asynchronous_clients_of_openenv_play_side_by_side(folder):
    clients = [
        AsyncEngineerClient(AsyncServer(), folder.path, report, index=index, count=4, episodes=2) for index in range(4)
    ]

    async def play(client):
        with refused("step: ", "reset"):
            await client.step(1)
        for reward in (0.25, 1.0, 1.0):
            given = await client.reset()
            assert given.observation == client.name_arguments(client.book.find_problem())
            await client.step(0)
            await client.step(reward)

    async def play_all():
        await asyncio.gather(*map(play, clients))

    asyncio.run(play_all())
    groups = read_groups(folder.path)
    assert sorted(groups) == [f"episodes 0 {place}" for place in range(8)]
    assert [len(groups[f"episodes 0 {place}"]) for place in range(8)] == [2] * 4 + [1] * 4
    assert [line.valid for line in groups["episodes 0 0"]] == [False, True]
    assert all(len({(line.version, line.key) for line in lines}) == 1 for lines in groups.values())


def test_the_example_balances_poles_and_redesigns(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gymnasium_engineer.py", str(tmp_path)])
    monkeypatch.syspath_prepend(EXAMPLES)
    example = EXAMPLES / "gymnasium_engineer.py"
    runpy.run_path(str(example), run_name="__main__")
    ended = state_of(tmp_path)
    assert ended["status"]["version"] >= 2
    assert len({(group[0].version, group[0].key) for group in read_groups(tmp_path).values()}) >= 64
    assert all(len({line.version for line in group}) == 1 for group in read_groups(tmp_path).values())
    runpy.run_path(str(example), run_name="__main__")
    assert EngineerFolder(tmp_path).status().outcomes == ended["status"]["outcomes"] | {}
    assert "was decided already" in capsys.readouterr().out
