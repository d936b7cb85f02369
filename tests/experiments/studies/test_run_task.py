"""A run as a task: what it takes of a machine, where it ran, and how it waits for what was lost to end."""

import threading
from pathlib import Path

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_config
from lakewright.experiments.loop.host.estimate import estimate_of
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.studies import run_task
from lakewright.experiments.studies.run_task import (
    LIBRARIES,
    RunMachines,
    RunNeeds,
    describe_task,
    hold_run,
    record_machine,
)
from lakewright.experiments.studies.study import plan_study
from tests.support.refusals import refused

STUDY = Path(__file__).with_name("study.toml")


def test_a_run_takes_the_memory_of_the_largest_by_the_estimate_and_one_gpu_for_each_process_that_trains():
    runs = plan_study(STUDY).runs
    task = describe_task(runs, RunNeeds())
    assert (task.cores, task.gpus) == (None, None)
    assert task.memory == LIBRARIES + max(estimate_of(run.settings).peak.total for run in runs)
    settings = msgspec.structs.replace(runs[0].settings, device="cuda")
    launch = msgspec.structs.replace(settings.launch, processes=2)
    on_gpus = msgspec.structs.replace(runs[0], settings=msgspec.structs.replace(settings, launch=launch))
    assert describe_task([on_gpus], RunNeeds()).gpus == 2
    assert describe_task([on_gpus], RunNeeds(cores=3, gpus=0.5)).gpus == 0.5


def test_a_run_of_several_processes_takes_a_core_and_the_libraries_for_each():
    runs = plan_study(STUDY).runs
    launch = msgspec.structs.replace(runs[0].settings.launch, processes=2)
    two = msgspec.structs.replace(runs[0], settings=msgspec.structs.replace(runs[0].settings, launch=launch))
    task = describe_task([*runs, two], RunNeeds())
    assert (task.processes, task.cores) == (2, 2)
    assert task.memory == 2 * (LIBRARIES + estimate_of(two.settings).peak.total)
    assert describe_task([two], RunNeeds(cores=8)).cores == 8
    launch = msgspec.structs.replace(launch, more=("--num_machines=2",))
    by_hand = msgspec.structs.replace(two, settings=msgspec.structs.replace(two.settings, launch=launch))
    assert describe_task([by_hand], RunNeeds()).processes == 1


@pytest.mark.parametrize(
    ("needs", "line"), [({"gpus": 1.5}, ["--gpus-per-run", 1.5]), ({"cores": 0}, ["--cores-per-run", 0])]
)
def test_what_no_run_can_take_is_refused(needs, line):
    with refused(*line):
        RunNeeds(**needs)


def test_the_machines_of_a_run_are_kept_in_order_and_one_that_goes_on_where_it_was_has_one(tmp_path, monkeypatch):
    run = RunFolder(tmp_path)
    for host in ("a", "a", "b", "a"):
        monkeypatch.setattr(run_task.socket, "gethostname", lambda host=host: host)
        record_machine(run)
    machines = read_config(tmp_path / "machines.json", RunMachines).machines
    assert [machine.host for machine in machines] == ["a", "b", "a"]
    assert all(machine.processor and machine.versions["torch"] for machine in machines)


def test_a_run_waits_for_the_process_of_a_lost_node_to_end_but_not_for_ever(tmp_path, monkeypatch):
    run, begun, end = RunFolder(tmp_path), threading.Event(), threading.Event()

    def hold():
        with run.locked():
            begun.set()
            end.wait()

    threading.Thread(target=hold, daemon=True).start()
    begun.wait()
    with pytest.raises(InputError, match="another process runs here"), hold_run(run, patience=0.0):
        pass
    threading.Timer(0.1, end.set).start()
    with hold_run(run, patience=60.0):
        assert end.is_set()
