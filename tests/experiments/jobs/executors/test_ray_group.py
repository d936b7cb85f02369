"""Runs of two processes on nodes of one core: one placement group each, and the same files as on one machine."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.experiments.jobs.executors import Ray, Task, WorkerDiedError
from lakewright.experiments.jobs.executors.ray_cluster import _plan_bundles
from lakewright.experiments.jobs.executors.ray_group import count_room, divide_task, find_group
from tests.support.processes.commands import lakewright_process, surroundings
from tests.support.processes.group_work import ask_nodes, die_always, die_once
from tests.support.processes.long_commands import CASES, STUDY
from tests.support.processes.ray_nodes import Nodes
from tests.support.refusals import refused

PATIENCE = 600  # seconds
GB = 10**9


class FakeRay:
    """The nodes of a cluster."""

    def __init__(self, *nodes: dict[str, float]) -> None:
        self.found = [{"Alive": True, "Resources": node} for node in nodes]

    def nodes(self) -> list[dict]:
        return self.found


def test_a_task_of_several_processes_is_on_one_node_where_one_has_room_for_it_and_else_divided():
    task = Task("run", cores=4, gpus=2, memory=8 * GB, processes=2)
    small = {"CPU": 2.0, "GPU": 1.0, "memory": 5.0 * GB}
    whole = {"CPU": 4, "GPU": 2, "memory": 8 * GB}
    assert _plan_bundles(FakeRay(small, {"CPU": 8.0, "GPU": 2.0, "memory": 9.0 * GB}), task) == [whole]
    assert _plan_bundles(FakeRay(small, small), task) == [divide_task(task)] * 2
    assert divide_task(task) == {"CPU": 2, "GPU": 1.0, "memory": 4 * GB}
    line = r"no node has them: .*, and all nodes together have room for 1 of its 2 processes; ask for less"
    with pytest.raises(InputError, match=line):
        _plan_bundles(FakeRay(small, {"CPU": 16.0}), task)
    with refused("2 cores"):
        _plan_bundles(FakeRay(small, small), Task("run", cores=4))


def test_a_node_has_room_for_as_many_parts_as_its_scarcest_resource():
    assert count_room([{"CPU": 5.0, "GPU": 1.0}, {"CPU": 1.0, "GPU": 8.0}], {"CPU": 1, "GPU": 0.5, "memory": 0}) == 3


def test_a_process_outside_of_a_cluster_has_no_group():
    assert find_group() is None


@pytest.mark.deep
def test_functions_are_called_in_every_bundle_and_a_part_that_dies_is_tried_again(tmp_path, monkeypatch):
    for name, value in surroundings().items():
        monkeypatch.setenv(name, value)
    with Nodes(2, seed=0) as nodes:
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        with Ray(task=Task("run", cores=2, prepare=int, processes=2), folder=tmp_path) as executor:
            here, there = executor.submit(ask_nodes, 0).result(timeout=PATIENCE)
            assert here != there, "each bundle fills a node"
            assert executor.submit(die_once, tmp_path / "died").result(timeout=PATIENCE) == "alive"
            with pytest.raises(WorkerDiedError):
                executor.submit(die_always, tmp_path).result(timeout=PATIENCE)


@pytest.fixture
def spec(tmp_path) -> Path:
    """The study of the tests with two runs whose stages are trained by two processes."""
    words = STUDY.read_text().replace("stages = 2\n", "stages = 2\nlaunch = { processes = 2 }\n")
    (tmp_path / "study.toml").write_text(words.replace('{ teacher = "random" }', '{ teacher = "random", seeds = [0] }'))
    return tmp_path / "study.toml"


@pytest.mark.deep
def test_two_processes_on_two_nodes_write_the_files_of_one_machine_though_a_node_is_killed(tmp_path, spec, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    ended = lakewright_process("study", spec, "--out", here, "--seeds", "0")
    assert ended.returncode == 0, ended.stderr
    for name, value in surroundings().items():
        monkeypatch.setenv(name, value)
    words = ["study", str(spec), "--out", str(there), "--executor", "ray", "--seeds", "0"]
    program = [str(Path(sys.executable).with_name("lakewright")), *words]
    with Nodes(2, seed=0) as nodes:
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        driver = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2):  # once it is the node of the loop, once the other, or twice the same
            wait_for_launch(there, driver)
            nodes.kill_one()
        _, said = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, said
    assert CASES["study"].state(there) == CASES["study"].state(here)


def wait_for_launch(folder: Path, driver: subprocess.Popen) -> None:
    """Waits until both processes of a stage have begun."""
    until = time.monotonic() + PATIENCE
    while not list(folder.glob("runs/*/stage_*/.scratch/launch_1.log")):
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < until
        time.sleep(0.2)
    time.sleep(3)
