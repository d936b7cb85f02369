"""A sweep as on a GPU, in threads of one process, makes the same tables as by processes of a processor."""

import pyarrow.parquet as pq
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.solver import solver
from lakewright.core_jax.support import parallel
from lakewright.experiments.boards.sweep import shards
from lakewright.experiments.boards.sweep.runner import sweep
from lakewright.experiments.boards.sweep.spec import SweepSpec, choose_spec
from lakewright.experiments.cli import sweep as commands
from lakewright.experiments.cli.conventions.options import ExecutorOptions
from lakewright.experiments.jobs.executors import Local
from lakewright.experiments.jobs.executors.choice import ExecutorChoice, Threads
from tests.support.refusals import refused


@pytest.mark.deep
@pytest.mark.parametrize("columns", [(), ("status", "makespan", "sum_of_costs", "wait_required", "cost_gap")])
def test_the_tables_are_the_same(monkeypatch, tmp_path, columns):
    spec = SweepSpec(
        sizes=(5,), agents=(2, 3), hole_ratios=(0.3,), boards={2: 100, 3: 8}, shard={2: 50, 3: 8}, columns=columns
    )
    with Local(1) as executor:
        expected = {one.path.name: pq.read_table(one.path) for one in sweep(spec, executor, tmp_path / "processor")}
    for module in (shards, solver):
        monkeypatch.setattr(module, "on_gpu", lambda: not parallel._on_host.get())
    with Threads() as executor:
        found = {one.path.name: pq.read_table(one.path) for one in sweep(spec, executor, tmp_path / "device")}
    assert found.keys() == expected.keys()
    for name in found:
        assert found[name].equals(expected[name]), name


def test_gpus_are_a_resource_of_each_shard(monkeypatch, tmp_path):
    asked = []

    def open_executor(choice, task, folder):
        asked.append(task.gpus)
        raise InputError("no cluster")

    monkeypatch.setattr(ExecutorChoice, "open", open_executor)
    (tmp_path / "a.toml").write_text("sizes = [4]\nagents = [2]\nhole_ratios = [0.0]\nboards = 8\nshard = 8\n")
    for given in ({}, {"gpus_per_shard": 1.0}):
        with pytest.raises(InputError, match="no cluster"):
            commands.run(tmp_path / "a.toml", out=tmp_path / "made", where=ExecutorOptions(executor="ray"), **given)
    assert asked == [None, 1.0]


def test_a_preset_is_tried_with_fewer_boards(tmp_path):
    spec = choose_spec(None, "billion", 11)
    assert (sum(cell.boards for cell in spec.cells()), len(spec.shards())) == (91 * 11, 91)
    with refused("sweep", "both"):
        choose_spec(tmp_path / "a.toml", "billion", None)
    with pytest.raises(InputError, match=r"billion\.toml with --boards: boards: 0 "):
        choose_spec(None, "billion", 0)
