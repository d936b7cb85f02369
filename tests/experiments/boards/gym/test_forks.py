"""Processes forked after JAX has started: what works there, and what is refused at once, with the remedy."""

import multiprocessing
import time
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from torch.utils.data import DataLoader

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import can_draw, draw_free, generate
from lakewright.core_jax.lake import reset_to, verdict, verify
from lakewright.core_jax.rows import rows_of, solve_rows, verify_rows
from lakewright.core_jax.solver import solve
from lakewright.core_jax.statistics import features
from lakewright.experiments.boards.episodes.trl_tasks import LakePlay, LakePrompts
from lakewright.experiments.boards.gym import LakeParallelEnv, TeamVectorEnv
from lakewright.experiments.environments.lake import Lake
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.trl import EngineerTasks
from tests.support.processes.commands import HOUSE

SMALL = {"size": 4, "agents": 2, "hole_ratio": 0.2, "boards": 16}
REFUSED = 'was forked after JAX had started, and JAX does not work in it; start it by "spawn"'
ADDITION = str(HOUSE / "docs" / "examples" / "addition.py:Addition")
SECONDS = 20.0  # after which a process hangs

pytestmark = pytest.mark.filterwarnings("ignore:os.fork\\(\\) was called", "ignore:.*multi-threaded, use of fork")


@pytest.fixture(scope="module", autouse=True)
def started():
    """JAX has started, and made what the forked processes find ready."""
    jax.block_until_ready(jax.numpy.zeros(1))
    config = EnvConfig.single(4, 2, 0.2, 0.5)
    return rows_of(generate(config, 0, 4), config)


def do_forked(*tasks: Callable[[], Any]) -> list[str]:
    """What each task says in a process forked from this one: an InputError, or its result."""
    context = multiprocessing.get_context("fork")
    told = context.SimpleQueue()

    def work() -> None:
        for task in tasks:
            try:
                told.put(str(task()))
            except ValueError as error:
                told.put(str(error))

    process = context.Process(target=work, daemon=True)
    process.start()
    process.join(SECONDS)
    hangs = process.is_alive()
    if hangs:
        process.kill()
    said = []
    while not told.empty():
        said.append(told.get())
    assert not hangs, f"it hangs after {said}"
    return said


def test_everything_that_uses_jax_refuses_at_once_in_a_forked_process_and_names_the_remedy(started):
    boards = draw_free(4, 2, 2, seed=0, first=0, count=4)
    labels = solve(boards)
    one = jax.tree.map(lambda field: field[0], boards)
    lake = Lake()
    problem = lake.draw(lake.start(), 1, seed=0)[0]
    tasks = {
        "generate": lambda: generate(EnvConfig.single(5, 2, 0.2, 0.5), 1, 2),
        "can_draw": lambda: can_draw(7, 2, 0.25, True),
        "draw_free": lambda: draw_free(4, 2, 2, seed=0, first=0, count=4),
        "solve": lambda: solve(boards),
        "solve_rows": lambda: solve_rows(started),
        "features": lambda: features(boards, labels),
        "verify": lambda: verify(boards, labels.moves),
        "verify_rows": lambda: verify_rows(started, [row.plan for row in started]),
        "reset_to": lambda: reset_to(one),
        "verdict": lambda: verdict(one, labels.moves[0]),
        "TeamVectorEnv": lambda: TeamVectorEnv(2, **SMALL),
        "other boards": lambda: gymnasium.make("lakewright/Lake-v0", **SMALL, pool_seed=9),
        "Lake.judge": lambda: lake.judge(problem, problem.answer),
        "Lake.make": lambda: lake.draw(lake.start(), 1, seed=5),
    }
    begun = time.monotonic()
    said = dict(zip(tasks, do_forked(*tasks.values()), strict=True))
    assert time.monotonic() - begun < SECONDS / 4
    assert {name: REFUSED in answer and "\n" not in answer for name, answer in said.items()} == dict.fromkeys(
        tasks, True
    )


def test_the_process_that_forked_goes_on():
    do_forked(lambda: draw_free(4, 2, 2, seed=0, first=0, count=4))
    assert draw_free(4, 2, 2, seed=0, first=0, count=4).holes.shape == (4, 4, 4)


def test_environments_in_forked_processes_play_as_in_this_one():
    parts = [lambda: gymnasium.make("lakewright/Lake-v0", **SMALL)] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forked = gymnasium.vector.AsyncVectorEnv(parts)
    here = gymnasium.vector.SyncVectorEnv(parts)
    rng = np.random.default_rng(0)
    try:
        for found, expected in zip(forked.reset(seed=4), here.reset(seed=4), strict=True):
            assert_same(found, expected)
        for _ in range(30):
            moves = rng.integers(5, size=(2, 2))
            forked.step_async(moves)
            for found, expected in zip(forked.step_wait(timeout=SECONDS), here.step(moves), strict=True):
                assert_same(found, expected)
    finally:
        forked.close(terminate=True)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_same(found[name], expected[name])
    else:
        np.testing.assert_array_equal(found, expected)


def test_games_of_trl_and_of_pettingzoo_are_played_in_forked_processes():
    play, parallel = LakePlay(**SMALL), LakeParallelEnv(**SMALL)

    def play_games() -> list[Any]:
        game = play.environment_factory()
        _, infos = parallel.reset(seed=1)
        *_, told = parallel.step({"agent_0": 4, "agent_1": 4})
        return [game.reset(3), game.move(["WAIT", "WAIT"]), infos["agent_0"]["makespan"], told["agent_0"]["failure"]]

    assert do_forked(play_games) == [str(play_games())]


def test_workers_of_a_loader_read_the_prompts_of_the_lake():
    prompts = LakePrompts(**SMALL).train_dataset
    loader = DataLoader(prompts, batch_size=4, num_workers=2, timeout=SECONDS, collate_fn=list)
    assert [row["row"] for batch in loader for row in batch] == prompts["row"][:]


def test_workers_of_a_loader_over_tasks_of_other_environments_read_the_problems_of_their_places(tmp_path):
    EngineerFolder.begin(tmp_path / "e", ADDITION, teacher="random")
    tasks = EngineerTasks(tmp_path / "e", places=8)
    loader = DataLoader(tasks.train_dataset, batch_size=2, num_workers=2, timeout=SECONDS, collate_fn=list)
    read = [(row["place"], row["prompt"]) for batch in loader for row in batch]
    assert read == [(place, tasks.find_problem(place, "train").prompt) for place in range(8)]


def test_workers_of_a_loader_over_tasks_of_the_lake_refuse_at_once(tmp_path):
    EngineerFolder.begin(tmp_path / "e", "lake", teacher="random")
    tasks = EngineerTasks(tmp_path / "e", places=8)
    assert len(tasks.train_dataset[0]["prompt"]) > 0
    loader = DataLoader(tasks.train_dataset, batch_size=2, num_workers=1, timeout=SECONDS, collate_fn=list)
    begun = time.monotonic()
    batches = iter(loader)
    with pytest.raises(ValueError, match=REFUSED):
        next(batches)
    assert time.monotonic() - begun < SECONDS / 4
    batches._shutdown_workers()  # type: ignore[attr-defined]  # else once the garbage is collected, in seconds
