"""A run of a study as a task of an executor: its resources, and the machine that it ran on."""

import contextlib
import os
import platform
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_config, write_json
from lakewright.experiments.jobs.executors.executor import Task
from lakewright.experiments.jobs.executors.ray_group import find_group
from lakewright.experiments.loop.dry_run import check_machine
from lakewright.experiments.loop.host.estimate import LIBRARIES, estimate_of
from lakewright.experiments.loop.host.machine import installed_version
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.studies.study import Planned

MACHINES = "machines.json"  # in a run's folder
PATIENCE = 20.0  # seconds in which the processes of a lost node end
PROCESSORS = Path("/proc/cpuinfo")
PACKAGES = ("lakewright", "jax", "torch", "transformers", "trl")


class RunNeeds(msgspec.Struct, frozen=True):
    """The cores of each run, and its GPUs, which may be shares; None follows from its settings."""

    cores: int | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        if self.cores is not None and self.cores < 1:
            raise InputError(f"--cores-per-run is {self.cores}; give at least 1")
        if self.gpus is not None and (self.gpus < 0 or (self.gpus > 1 and self.gpus % 1)):
            raise InputError(f"--gpus-per-run is {self.gpus:g}; give 0, a whole number, or a share of one such as 0.5")


class RunMachine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine that a run was on: floats may differ between processors, and between versions."""

    host: str
    processor: str
    gpus: list[str]
    versions: dict[str, str]


class RunMachines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """machines.json: the machines that a run was on, in order; a run that never moved has one."""

    machines: list[RunMachine] = []


def describe_task(runs: Sequence[Planned], needs: RunNeeds) -> Task:
    """The resources of each run of a study: memory is the `lakewright estimate` of the largest, and the libraries.

    Raises InputError as `estimate_of`.
    """
    settings = list({planned.arm: planned.settings for planned in runs}.values())
    on_gpus = max((one.launch.processes for one in settings if one.device == "cuda"), default=None)
    gpus = on_gpus if needs.gpus is None else needs.gpus
    found = map(estimate_of, settings)
    memory = max(one.loading if gpus else one.processes * one.peak.total for one in found)
    processes = max(1 if one.launch.starts_machines else one.launch.processes for one in settings)
    cores = needs.cores or (processes if processes > 1 else None)
    return Task("run", cores, gpus, memory + processes * LIBRARIES, prepare_process, processes)


def check_machines(runs: Sequence[Planned]) -> None:
    """Raises InputError if this machine can't satisfy the needs of a run."""
    for planned in runs:
        check_machine(planned.settings)


@contextlib.contextmanager
def hold_run(run: RunFolder, patience: float = PATIENCE) -> Iterator[None]:
    """Keeps other processes out of a run, once processes of a lost node that worked on it have ended.

    patience: seconds to wait for these.
    """
    until = time.monotonic() + patience
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(run.locked())
                break
            except InputError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.5)
        yield


def record_machine(run: RunFolder) -> None:
    """Adds this machine, and its group's, to the machines that a run was on, if they are others than the last."""
    path, here, group = run.folder / MACHINES, [_describe_machine()], find_group()
    if group:
        others = group.results([group.submit(place, _describe_machine) for place in range(1, group.count)])
        here += [machine for machine in others if machine not in here]
    there = read_config(path, RunMachines).machines if path.exists() else []
    if there[-len(here) :] != here:
        write_json(path, RunMachines([*there, *here]))


def _describe_machine() -> RunMachine:
    import torch

    lines = PROCESSORS.read_text(encoding="utf-8").splitlines() if PROCESSORS.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    versions = {name: installed_version(name) or "" for name in PACKAGES}
    return RunMachine(socket.gethostname(), next(names, platform.processor()), gpus, versions)


def prepare_process() -> None:
    """A process that shares its machine: as many threads as cores, and silent because its run is reported elsewhere."""
    if "OMP_NUM_THREADS" in os.environ:
        os.environ.setdefault("NPROC", os.environ["OMP_NUM_THREADS"])
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
