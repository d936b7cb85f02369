"""Boards drawn during training: the same in any portions, by a process that never outlives its parent."""

import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from lakewright.core_jax.config import EnvConfig, with_teams
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import generate
from lakewright.core_jax.rows import symmetric_fingerprint
from lakewright.core_jax.types import Failure
from lakewright.policy.tasks import BoardTask, augment_task, row_of_task, task_of
from lakewright.policy.training import BoardTaskStream, tasks_of, with_hole_ratios
from lakewright.policy.training.board_stream import _draw_chunks
from lakewright.policy.training.reward import play_plans
from tests.support.boards.generated_rows import ROOMY, SMALL
from tests.support.boards.sample_boards import as_lists, picture
from tests.support.models.tiny_policy import padded
from tests.support.processes.commands import surroundings
from tests.support.processes.watching import PATIENCE
from tests.support.refusals import refused

CONFIGS = with_hole_ratios(SMALL, (0.2, 0.4))
SEED, CHUNK = 3, 32


def same(one: BoardTask, other: BoardTask) -> bool:
    """Whether two tasks have one board and one plan."""
    return as_lists(one.board) == as_lists(other.board) and np.array_equal(one.moves, other.moves)


@pytest.fixture(scope="module")
def stream():
    with BoardTaskStream(CONFIGS, SEED, chunk=CHUNK) as opened:
        yield opened


@pytest.fixture(scope="module")
def taken(stream):
    """The first tasks of the stream, in odd portions."""
    return [task for count in (1, 40, 7, 52) for task in stream.take(count)]


def test_the_boards_are_those_of_config_seed_and_index(taken):
    first = [tasks_of(generate(config, SEED, CHUNK)) for config in CONFIGS]
    second = tasks_of(generate(CONFIGS[0], SEED, CHUNK, first=CHUNK))
    for task, expected in zip(taken, [*first[0], *first[1], *second], strict=False):
        assert same(task, expected), picture(task.board)
        assert task.hole_ratio == expected.hole_ratio, picture(task.board)


def test_a_drawn_board_has_the_hole_ratio_of_its_config_whatever_its_team():
    tasks = next(_draw_chunks([with_teams(ROOMY, (2, 3))], SEED, 0, 8))
    assert [len(task.board.starts) for task in tasks] == [2, 3] * 4
    assert {task.hole_ratio for task in tasks} == {0.1}, "on the boards themselves it is 1 of 5, and 0 of 3"
    assert {row_of_task(task, "one").hole_ratio for task in tasks} == {0.1}
    assert {task_of(row_of_task(task, "one")).key for task in tasks} == {task.key for task in tasks}


@pytest.mark.deep
def test_a_stream_opened_further_on_gives_the_same_boards(taken):
    with BoardTaskStream(CONFIGS, SEED, first=45, chunk=CHUNK) as again:
        for task, expected in zip(again.take(30), taken[45:75], strict=True):
            assert same(task, expected), picture(task.board)


@pytest.mark.deep
def test_excluded_boards_and_their_symmetric_copies_are_replaced_and_counted(taken):
    rng = np.random.default_rng(0)
    banned = [3, 4, 40, 41]
    excluded = {symmetric_fingerprint(augment_task(taken[place], rng).board) for place in banned}
    met = [symmetric_fingerprint(task.board) in excluded for task in taken]
    with BoardTaskStream(CONFIGS, SEED, chunk=CHUNK, excluded=excluded) as stream:
        found = stream.take(len(taken))
    assert stream.replaced == sum(met) >= len(banned)
    for place, (task, before, again) in enumerate(zip(taken, met, found, strict=True)):
        assert before or same(task, again), f"{place}: {picture(task.board)}"
        assert symmetric_fingerprint(again.board) not in excluded, f"{place}: {picture(again.board)}"


def test_a_stream_whose_boards_are_all_excluded_is_refused(taken):
    excluded = {symmetric_fingerprint(task.board) for task in taken[:CHUNK]}
    with refused(CHUNK, "excluded"):
        BoardTaskStream(CONFIGS, SEED, chunk=CHUNK, excluded=excluded)


def test_every_plan_is_valid_at_its_cost(taken):
    verdicts = play_plans(taken, np.stack([padded(task) for task in taken]))
    for task, failure, cost in zip(taken, verdicts.failure, verdicts.sum_of_costs, strict=True):
        assert (failure, cost) == (Failure.NONE, task.sum_of_costs), picture(task.board)


@pytest.mark.deep
def test_boards_wait_for_the_taker_and_not_the_taker_for_boards(stream, taken):
    deadline = time.monotonic() + PATIENCE
    while not stream._chunks.full():
        assert time.monotonic() < deadline, "no boards are drawn ahead"
        time.sleep(0.01)
    before = stream.waited
    stream.take(4 * CHUNK)
    assert stream.waited - before < 5, "seconds, where nothing but a queue is read"


@pytest.mark.deep  # as one whose boards are all excluded
def test_boards_that_cannot_be_drawn_are_reported():
    impossible = EnvConfig.single(3, agents=1, hole_ratio=0.2, wait_ratio=0.5)
    with refused("sizes.3.wait_ratio", "0.5", 1):
        BoardTaskStream([impossible], 0, chunk=CHUNK)


@pytest.mark.deep
def test_a_generator_that_was_killed_is_reported_and_not_waited_for(taken):
    with BoardTaskStream(CONFIGS[:1], SEED, chunk=CHUNK) as other:
        other._process.kill()
        with pytest.raises(InputError, match="the process that draws boards has died"):
            other.take(100_000)


@pytest.mark.deep
def test_the_process_ends_with_a_parent_that_is_killed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import time
from tests.support.boards.generated_rows import ROOMY, SMALL
from lakewright.policy.training import BoardTaskStream
if __name__ == "__main__":
    stream = BoardTaskStream([SMALL], 0, chunk=32)
    print(stream._process.pid, flush=True)
    time.sleep(600)
""")
    env = surroundings()
    parent = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True, env=env)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs([child], timeout=60)
    assert not alive
