"""A long command uses the whole machine without being asked, and its files stay the same."""

import functools
import os

import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.experiments.boards.files import generate_file
from lakewright.experiments.jobs.executors import Task, choice
from lakewright.experiments.jobs.executors.choice import Growing, Threads
from lakewright.experiments.jobs.executors.executor import SERIAL, in_order


def number(item: int) -> tuple[int, int]:
    """The item, and the process that had it."""
    return item, os.getpid()


@pytest.mark.deep
def test_a_short_command_stays_in_its_process_and_a_long_one_takes_others(monkeypatch):
    with Growing(Task(prepare=int)) as executor:
        assert {process for _, process in in_order(executor, number, range(3))} == {os.getpid()}
        monkeypatch.setattr(choice, "ALONE", -1.0)
        found = list(in_order(executor, number, range(20)))
    assert [item for item, _ in found] == list(range(20))
    assert os.getpid() not in {process for _, process in found}


@pytest.mark.parametrize(
    ("there", "gpu", "spreads", "expected"),
    [
        (2, False, True, type(SERIAL)),
        (8, False, True, Growing),
        (8, False, False, type(SERIAL)),
        (2, True, True, Threads),
    ],
)
def test_the_whole_machine_is_for_tasks_that_spread_where_it_has_more_than_a_process_can_use(
    monkeypatch, there, gpu, spreads, expected
):
    monkeypatch.setattr(choice, "cores", lambda: there)
    monkeypatch.setattr(choice, "has_gpu", lambda: gpu)
    with choice.HERE.open(Task(spreads=spreads)) as executor:
        assert type(executor) is expected


@pytest.mark.deep
def test_files_are_the_same_byte_for_byte(monkeypatch, tmp_path):
    draw = functools.partial(generate_file, EnvConfig.single(5, 2, hole_ratio=0.3, wait_ratio=0.5), 1, 6000)
    draw(tmp_path / "here.parquet")
    monkeypatch.setattr(choice, "MANY_CORES", 1)
    monkeypatch.setattr(choice, "ALONE", -1.0)
    draw(tmp_path / "there.parquet")
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()
