"""Files of boards are the same byte for byte, whoever works on their parts."""

import contextlib
import functools
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.rows import SCHEMA
from lakewright.experiments.boards.benchmark import builder
from lakewright.experiments.boards.benchmark.tiers import TIERS
from lakewright.experiments.boards.files import generate_file, solve_file, verify_file
from lakewright.experiments.jobs.executors import Local, Task, choice
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.runtime.progress_bars import Watch
from tests.support.boards.generated_rows import small_rows
from tests.support.processes.killable_work import SMALL_TIER, few_rows_a_part

THERE = ExecutorChoice("local", 1)


class Pretender(ThreadPoolExecutor):
    """Threads that are taken for processes: they get copies, and read files themselves."""

    separate = True

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.at_once = 2 * workers

    def submit(self, function, item):
        function, item = pickle.loads(pickle.dumps((function, item)))
        return super().submit(function, item)


class Elsewhere(ThreadPoolExecutor):
    """Threads that are taken for another machine: they get rows that were read here."""

    elsewhere, at_once = True, 4


@pytest.fixture(scope="module")
def other_process():
    """A process that does the work of all these tests."""
    with Local(1) as executor:
        yield executor


@pytest.fixture(autouse=True)
def few(monkeypatch):
    few_rows_a_part(monkeypatch)


@pytest.fixture
def work_by(monkeypatch):
    """Sets what opens the executor that THERE names."""
    open_here = ExecutorChoice.open

    def set_opener(opened):
        monkeypatch.setattr(
            ExecutorChoice, "open", lambda self, *needs: opened() if self is THERE else open_here(self, *needs)
        )

    return set_opener


def make_files(folder: Path, form: str, where: ExecutorChoice, rows: Path, plans: Path) -> dict[str, tuple]:
    """What each command makes, its counts, and its reports."""
    made: dict[str, tuple] = {}
    folder.mkdir()
    generate_file(EnvConfig.single(3, 2, 0.2, 0.5), 1, 36, folder / f"drawn{form}", where=where)
    made["generate"] = ((folder / f"drawn{form}").read_bytes(),)
    for name, work in (
        ("solve", functools.partial(solve_file, rows)),
        ("verify", functools.partial(verify_file, rows)),
        ("verify plans", functools.partial(verify_file, rows, plans=plans)),
    ):
        out, rejects, reports = folder / f"{name}{form}", folder / f"{name} rejects{rows.suffix}", list[str]()
        tally = work(out=out, watch=Watch(on_bad_row=reports.append), rejects=rejects, where=where)
        made[name] = out.read_bytes(), rejects.read_bytes(), tally, reports
    return made


@pytest.fixture(params=[".jsonl", ".parquet"])
def inputs(request, tmp_path) -> tuple[str, Path, Path]:
    """The form of a file of rows, some of them bad, the file, and plans for it."""
    good = [msgspec.to_builtins(row) for row in small_rows(count=36)]
    plans = [{"id": row["id"], "plan": row["plan"]} for row in good[:33]]
    for place in (3, 29, 30):  # the first part, and chunks of a later one that are not its first
        good[place]["size"] = 9
    rows = tmp_path / f"rows{request.param}"
    if rows.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(good, SCHEMA), rows, row_group_size=20)
    else:
        rows.write_bytes(msgspec.json.Encoder().encode_lines(good))
    (tmp_path / "plans.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(plans))
    return request.param, rows, tmp_path / "plans.jsonl"


def test_files_counts_and_reports_are_the_same_whoever_reads_and_however_many_work(
    inputs, tmp_path, work_by, monkeypatch
):
    form, *given = inputs
    expected = make_files(tmp_path / "here", form, HERE, *given)
    place = f"{given[0]}{':' if form == '.jsonl' else ': row '}"
    for report, number in zip(expected["solve"][3], (4, 30, 31), strict=True):
        assert report.startswith(f"{place}{number}: grid has 3 lines for size 9")
    assert "no plan for" in expected["verify plans"][3][-1]
    monkeypatch.setattr(choice, "ALONE", 0.0)  # one task in this process, then others
    monkeypatch.setattr(choice, "_start_processes", lambda workers, task: Pretender(2))
    openers = {"one": lambda: Pretender(1), "three": lambda: Pretender(3), "far": lambda: Elsewhere(2)}
    for name, opened in (openers | {"growing": lambda: choice.Growing(Task())}).items():
        work_by(opened)
        assert make_files(tmp_path / name, form, THERE, *given) == expected, name


def test_files_are_the_same_by_another_process(inputs, tmp_path, work_by, other_process):
    form, *given = inputs
    expected = make_files(tmp_path / "here", form, HERE, *given)
    work_by(lambda: contextlib.nullcontext(other_process))
    assert make_files(tmp_path / "there", form, THERE, *given) == expected


@pytest.mark.deep
@pytest.mark.parametrize("workers", [2, 3])
def test_files_are_the_same_by_several_processes(inputs, tmp_path, work_by, workers):
    form, *given = inputs
    expected = make_files(tmp_path / "here", form, HERE, *given)
    with Local(workers) as executor:
        work_by(lambda: contextlib.nullcontext(executor))
        assert make_files(tmp_path / "there", form, THERE, *given) == expected


@pytest.mark.deep
def test_a_benchmark_is_built_as_here(tmp_path, monkeypatch, work_by, other_process):
    work_by(lambda: contextlib.nullcontext(other_process))
    monkeypatch.setitem(TIERS, "small", SMALL_TIER)
    here = builder.build_benchmark(tmp_path / "here", "small", 0)
    assert builder.build_benchmark(tmp_path / "there", "small", 0, where=THERE) == here
