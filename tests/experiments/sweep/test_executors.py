"""Shards are the same whoever makes them, and a worker that dies costs its own shard only."""

import functools
import multiprocessing
import sys

import pytest
import ray

from lakewright.core_jax.errors import InputError
from lakewright.experiments.resumable.worker_processes import ATTEMPTS, WorkerDiedError
from lakewright.experiments.sweep import Local, Ray, sweep
from tests.support.processes.commands import HOUSE
from tests.support.processes.pool_work import noted, notes
from tests.support.samples.tiny_sweep import SPEC, data_of, expected

ITEMS = ("a", "die once", "b", "c")


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HOUSE))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(params=["local", "ray"])
def executor(request):
    if request.param == "ray":
        request.getfixturevalue("cluster")
    return {"local": Local, "ray": Ray}[request.param](2)


def test_a_worker_that_is_killed_costs_its_own_item_only(tmp_path, executor):
    results = sorted(executor.map(functools.partial(noted, tmp_path), ITEMS))
    assert results == sorted(item.upper() for item in ITEMS)
    times = {item: len(paths) for item, paths in notes(tmp_path, ITEMS).items()}
    assert times == {"a": 1, "die once": 2, "b": 1, "c": 1}


def test_an_item_that_kills_every_worker_is_given_up(tmp_path, executor):
    with pytest.raises(WorkerDiedError, match="is there enough memory"):
        list(executor.map(functools.partial(noted, tmp_path), ["die"]))
    assert len(notes(tmp_path, ("die",))["die"]) == ATTEMPTS


def test_what_a_worker_raises_is_raised_here_and_the_rest_is_left(tmp_path, executor):
    with pytest.raises(OSError, match="No space left") as raised:
        list(executor.map(functools.partial(noted, tmp_path), ["full disk", *(f"slow {i}" for i in range(400))]))
    assert (raised.value.errno, raised.value.filename) == (28, "shard.parquet")
    assert len(list(tmp_path.iterdir())) < 300, "much was begun after it failed"


def test_two_local_workers_make_the_same_files_and_end(tmp_path):
    made = [shard.path.name for shard in sweep(SPEC, Local(2), tmp_path)]
    assert sorted(made) == sorted(expected()), "each shard is reported once"
    assert data_of(tmp_path) == expected()
    assert not multiprocessing.active_children()


def test_ray_makes_the_same_files(tmp_path, cluster):
    assert len(list(sweep(SPEC, Ray(), tmp_path))) == len(expected())
    assert data_of(tmp_path) == expected()


def test_where_ray_is_not_installed_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install lakewright\[cluster\]"):
        list(Ray().map(str, [1]))
