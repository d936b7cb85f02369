"""Results are the same whoever works, and a worker that dies costs its own task only."""

import contextlib
import functools
import multiprocessing
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import ray

from lakewright.core_jax.errors import InputError
from lakewright.experiments.boards.sweep import sweep
from lakewright.experiments.jobs.executors import (
    Local,
    Ray,
    Serial,
    Task,
    WorkerDiedError,
    as_finished,
    in_order,
    node,
    ray_cluster,
)
from lakewright.experiments.jobs.executors.executor import ATTEMPTS
from lakewright.experiments.jobs.executors.node import TOKEN, mark_home
from tests.support.processes.commands import surroundings
from tests.support.processes.pool_work import noted, notes
from tests.support.refusals import refused
from tests.support.samples.tiny_sweep import SPEC, data_of, expected

ITEMS = ("a", "die once", "b", "c")


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", surroundings()["PYTHONPATH"])
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.deep)])
def executor(request):
    if request.param == "ray":
        request.getfixturevalue("cluster")
    with {"local": Local, "ray": Ray}[request.param](2, Task(prepare=int)) as opened:  # which does nothing
        yield opened


def outcomes(executor, folder, items) -> dict:
    """Each item with its result, or the error that it came to."""
    found = {}
    for item, done in as_finished(executor, functools.partial(noted, folder), items):
        found[item] = done.exception() or done.result()
    return found


def test_a_worker_that_is_killed_costs_its_own_item_only_and_one_that_kills_all_is_given_up(tmp_path, executor):
    found = outcomes(executor, tmp_path, (*ITEMS, "die"))
    died = found.pop("die")
    assert isinstance(died, WorkerDiedError)
    assert str(died) == "3 workers died on it; is there enough memory?"
    assert found == {item: item.upper() for item in ITEMS}
    times = {item: len(paths) for item, paths in notes(tmp_path, (*ITEMS, "die")).items()}
    assert times == {"a": 1, "die once": 2, "b": 1, "c": 1, "die": ATTEMPTS}


def test_what_a_worker_raises_is_raised_here_and_the_rest_is_left(tmp_path, executor):
    items = ["full disk", *(f"slow {i}" for i in range(400))]
    with pytest.raises(OSError, match="No space left") as raised:
        list(in_order(executor, functools.partial(noted, tmp_path), items))
    assert (raised.value.errno, raised.value.filename) == (28, "shard.parquet")
    assert len(list(tmp_path.iterdir())) < 300, "much was begun after it failed"


@pytest.mark.parametrize("opened", [Serial, lambda: ThreadPoolExecutor(2)], ids=["serial", "concurrent.futures"])
def test_results_come_in_order_from_whatever_is_shaped_like_an_executor(opened):
    assert list(in_order(opened(), str, range(5))) == ["0", "1", "2", "3", "4"]
    with pytest.raises(ValueError, match="invalid literal"):
        list(in_order(opened(), int, ["1", "x"]))


def test_this_process_begins_no_task_before_the_last_was_seen():
    begun = []
    with contextlib.closing(as_finished(Serial(), begun.append, [1, 2, 3])) as finishing:
        next(finishing)
    assert begun == [1]


@pytest.mark.deep
def test_two_local_workers_make_the_same_files_and_end(tmp_path):
    with Local(2) as executor:
        made = [shard.path.name for shard in sweep(SPEC, executor, tmp_path)]
    assert sorted(made) == sorted(expected()), "each shard is reported once"
    assert data_of(tmp_path) == expected()
    assert not multiprocessing.active_children()


def test_ray_makes_the_same_files_and_leaves_no_other(tmp_path, cluster):
    with Ray(folder=tmp_path) as executor:
        assert list(tmp_path.glob(f"{TOKEN}-*"))
        assert len(list(sweep(SPEC, executor, tmp_path))) == len(expected())
    assert data_of(tmp_path) == expected()
    assert not list(tmp_path.glob(f"{TOKEN}-*"))


def test_a_second_command_takes_no_nodes_from_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(node, "_ENTERED", [])
    with mark_home(tmp_path) as home:
        with mark_home(tmp_path):  # until it is refused
            node.enter_node.__wrapped__(home)
        node.enter_node.__wrapped__(home)
    assert node.entered() == home


def test_where_ray_is_not_installed_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"ray.*pip install 'lakewright\[cluster\]'"):
        Ray()


@pytest.mark.deep
def test_a_task_that_needs_more_than_any_node_has_is_refused_before_work_starts(cluster):
    needs = r"^a run takes 64 cores, 0 GPUs and 0.0 GB of memory, but no node has them: the largest has 2 cores"
    with pytest.raises(InputError, match=needs):
        Ray(task=Task("run", cores=64))


@pytest.mark.deep
def test_of_two_drivers_on_one_folder_one_is_refused(tmp_path, cluster, monkeypatch):
    with Ray(folder=tmp_path), monkeypatch.context() as patch:
        patch.setattr(ray_cluster, "LET_GO", 0.0)
        with pytest.raises(InputError, match=f"^{tmp_path}: another driver of this cluster works on it; wait for it"):
            Ray(folder=tmp_path)
        with Ray(folder=tmp_path / "another"):
            pass
    with Ray(task=Task(prepare=int), folder=tmp_path) as executor:
        assert executor.submit(str, 1).result() == "1"


def test_a_node_that_does_not_share_the_folder_is_named_and_so_is_one_of_another_version(tmp_path, monkeypatch):
    home = node.Home(str(tmp_path), (("jax", "0.1"),))
    with pytest.raises(InputError, match=r"^node \S+: jax is \S+, but 0.1 where the command runs; install the same$"):
        node.enter_node(home)
    monkeypatch.setattr(node, "PATIENCE", 0.0)
    home = node.Home(str(tmp_path), (), str(tmp_path / "out"), "token")
    with pytest.raises(InputError, match=r"on a disk that all nodes share$"):
        node.enter_node(home)


def test_a_cluster_that_cannot_be_reached_is_named_at_once(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    with refused(f"RAY_ADDRESS: {address}", "(Connection refused)"):
        Ray()


def test_a_cluster_that_ray_refuses_is_named_with_its_reason(monkeypatch):
    def fails(**options):
        raise RuntimeError("Version mismatch\nof Ray")

    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setattr(ray, "init", fails)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with refused("RAY_ADDRESS:", "(Version mismatch)"):
        Ray()
