"""A study on a cluster of several nodes: the same files as on one machine, whatever is killed meanwhile."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.processes.commands import lakewright_process, surroundings
from tests.support.processes.long_commands import CASES, STUDY
from tests.support.processes.ray_nodes import Nodes

KILLS, DRIVERS = 20, 5  # nodes that are killed while the study runs; after every so many its driver is killed too
PATIENCE = 900  # seconds


@pytest.fixture
def spec(tmp_path) -> Path:
    """The study of the tests with twenty runs."""
    (tmp_path / "study.toml").write_text(
        STUDY.read_text()
        .replace(
            '{ seeds = [0, 1], teacher = "fixed" }', '{ seeds = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], teacher = "fixed" }'
        )
        .replace('{ teacher = "random" }', '{ seeds = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], teacher = "random" }')
    )
    return tmp_path / "study.toml"


def start(spec: Path, out: Path, address: str) -> subprocess.Popen:
    """The driver."""
    words = ["study", str(spec), "--out", str(out), "--executor", "ray", "--json"]
    program = [str(Path(sys.executable).with_name("lakewright")), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(program, env={**surroundings(), "RAY_ADDRESS": address}, **pipes)


@pytest.mark.deep
def test_a_study_ends_as_on_one_machine_though_nodes_and_its_driver_are_killed(tmp_path, spec, monkeypatch):
    here, there, chance = tmp_path / "here", tmp_path / "there", random.Random(0)
    assert lakewright_process("study", spec, "--out", here).returncode == 0
    for name, value in surroundings().items():  # the nodes' is that of this process
        monkeypatch.setenv(name, value)
    kills = 0
    with Nodes(2, seed=0) as nodes:
        driver = start(spec, there, nodes.address)
        while kills < KILLS and driver.poll() is None:
            time.sleep(chance.uniform(2, 8))
            nodes.kill_one()
            kills += 1
            if not kills % DRIVERS:
                driver.kill()
                driver.communicate()
                driver = start(spec, there, nodes.address)
        found, said = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, said
    assert kills == KILLS, "the study was over before"
    assert json.loads(found)["missing"] == []
    assert CASES["study"].state(there) == CASES["study"].state(here)


@pytest.mark.deep
def test_a_cluster_that_disappears_ends_the_command_with_a_line(tmp_path, spec, monkeypatch):
    for name, value in surroundings().items():
        monkeypatch.setenv(name, value)
    with Nodes(1, seed=0) as nodes:
        driver = start(spec, tmp_path / "out", nodes.address)
        until = time.monotonic() + PATIENCE
        while not list((tmp_path / "out").glob("runs/*/stage_00")):
            assert time.monotonic() < until
            time.sleep(0.5)
        nodes.kill_head()
        found, said = driver.communicate(timeout=PATIENCE)
    assert (driver.returncode, found) == (1, "")
    assert any("the same command resumes" in line for line in said.splitlines() if line.startswith("lakewright")), said
    assert os.path.exists(tmp_path / "out" / "study.json")
