"""Files of boards are the same byte for byte, whoever works on their parts."""

import contextlib

import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.rows import write_rows
from lakewright.experiments.boards.benchmark import builder
from lakewright.experiments.boards.benchmark.tiers import TIERS
from lakewright.experiments.boards.files import generate_file, solve_file, verify_file
from lakewright.experiments.jobs.executors import Local
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from tests.support.boards.generated_rows import small_rows, unsolved
from tests.support.processes.killable_work import SMALL_TIER, few_rows_a_part

THERE = ExecutorChoice("local", 1)


@pytest.fixture(scope="module")
def other_process():
    """A process that does the work of all these tests."""
    with Local(1) as executor:
        yield executor


@pytest.fixture(autouse=True)
def there(monkeypatch, other_process):
    """Whatever names it works in the other process, part by part."""
    few_rows_a_part(monkeypatch)
    open_here = ExecutorChoice.open
    monkeypatch.setattr(
        ExecutorChoice,
        "open",
        lambda self, *needs: contextlib.nullcontext(other_process) if self is THERE else open_here(self, *needs),
    )


def test_boards_are_drawn_as_here(tmp_path):
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    for path, where in ((here, HERE), (there, THERE)):
        generate_file(EnvConfig.single(3, 2, 0.2, 0.5), 1, 50, path, where=where)
    assert there.read_bytes() == here.read_bytes()


def test_rows_are_solved_as_here_and_bad_ones_are_left_out_in_the_same_order(tmp_path):
    rows, here, there = tmp_path / "rows.jsonl", tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    write_rows(rows, map(unsolved, small_rows(count=50)))
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join([*lines[:9], "{}", *lines[9:30], "no row", *lines[30:]]) + "\n")
    tallies = [solve_file(rows, path, where=where) for path, where in ((here, HERE), (there, THERE))]
    assert tallies[0] == tallies[1]
    assert tallies[0]["bad_rows"] == 2
    assert there.read_bytes() == here.read_bytes()


def test_plans_are_judged_as_here(tmp_path):
    rows, here, there = tmp_path / "rows.jsonl", tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    write_rows(rows, small_rows(count=50))
    tallies = [verify_file(rows, path, where=where) for path, where in ((here, HERE), (there, THERE))]
    assert tallies[0] == tallies[1]
    assert there.read_bytes() == here.read_bytes()


@pytest.mark.deep
def test_a_benchmark_is_built_as_here(tmp_path, monkeypatch):
    monkeypatch.setitem(TIERS, "small", SMALL_TIER)
    here = builder.build_benchmark(tmp_path / "here", "small", 0)
    assert builder.build_benchmark(tmp_path / "there", "small", 0, where=THERE) == here
