"""Training in several processes: the loop stays one process, and `accelerate launch` runs a stage's training.

The processes end with the one that launched them, even if that one is killed, so a resumed run never meets them.
If the run is a task in a placement group of a Ray cluster, each process is started in a bundle of its own.
"""

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, starter
from lakewright.experiments.jobs.executors.ray_group import PATIENCE as NOTICED
from lakewright.experiments.jobs.executors.ray_group import RayGroup, find_group, find_port

STAGE_PROCESS = "lakewright.experiments.loop.training.stage_process"
BAD_INPUT = 2
PATIENCE = 1.0  # seconds between two calls of `on_wait`
ERROR_PREFIX = "lakewright: "  # begins the line that reports bad input


class LaunchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of training processes, and their launch."""

    processes: Count = 1
    """Number of training processes; with 1 and no config, the loop's own process trains."""
    config: Literal["none", "single_gpu", "multi_gpu", "zero1", "zero2", "zero3", "fsdp1", "fsdp2"] = "none"
    """An accelerate config that TRL ships; none: plain data parallel training."""
    more: tuple[str, ...] = ()
    """Further arguments of `accelerate launch`, such as --num_machines=2 and --machine_rank=0."""
    prefix: tuple[str, ...] = ()
    """A command to put before the launch command, such as srun."""

    @property
    def elsewhere(self) -> bool:
        """Return True if training runs in processes of its own."""
        return self.processes > 1 or self.config != "none"

    @property
    def starts_machines(self) -> bool:
        """Return True if the settings themselves say how processes are started on several machines."""
        return bool(self.prefix) or any(word.startswith("--num_machines") for word in self.more)


def launch_stage(
    settings: LaunchSettings,
    run: Path,
    number: int,
    previous: Path,
    tokens: float,
    log: Path,
    on_wait: Callable[[], object],
) -> None:
    """Trains a stage of a run in processes of its own.

    Args:
        settings: the launch's settings.
        run: the run folder.
        number: number of the stage.
        previous: the checkpoint to begin with.
        tokens: training ends once this many are generated.
        log: the file for the output of the processes.
        on_wait: called every second.

    Raises InputError if the processes refuse their input or fail.
    """
    group = None if settings.starts_machines else find_group()
    machines = _name_machines(settings, group) if group else [settings]
    first, *others = (launch_command(machine, run, number, previous, tokens) for machine in machines)
    log.parent.mkdir(parents=True, exist_ok=True)
    if group and others:
        started = [
            group.submit(place, _run_alone, command, log.with_stem(f"{log.stem}_{place}"))
            for place, command in enumerate(others, start=1)
        ]
        try:
            code = _run_command(first, log, on_wait, functools.partial(group.results, started))
        finally:
            group.cancel(started)
    else:
        code = _run_alone(first, log, on_wait)
    if code:
        refused = [
            line
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
            if line.startswith(ERROR_PREFIX)
        ]
        failed = f"stage {number}: `accelerate launch` ended with {code}; its output is in {log}"
        raise InputError(refused[0].removeprefix(ERROR_PREFIX) if refused else failed)


def _run_alone(command: Sequence[str], log: Path, on_wait: Callable[[], object] = lambda: None) -> int:
    return _run_command(command, log, on_wait, lambda patience: [])


def _run_command(
    command: Sequence[str], log: Path, on_wait: Callable[[], object], check_others: Callable[[float], list[int]]
) -> int:
    """The exit code of a command whose output goes to `log`; it is ended if another of its group fails.

    Args:
        command, log: the command, and the file for its output.
        on_wait: called every second.
        check_others: waits at most the given seconds for the other commands, gives the exit codes of the finished, and
            raises NodeLostError if a node is lost.
    """
    with open(log, "wb") as words:
        process = subprocess.Popen(command, env={**os.environ, **starter()}, stdout=words, stderr=subprocess.STDOUT)
        try:
            while process.poll() is None:
                on_wait()
                if any(check_others(0.0)):
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(NOTICED)  # it fails too, and may say why
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
        finally:
            process.terminate()
    code = process.wait()
    check_others(NOTICED)  # they end now too; where this one failed, a node that is lost may have been the reason
    return code


def _name_machines(settings: LaunchSettings, group: RayGroup) -> list[LaunchSettings]:
    """The settings of the launch in each bundle of a group: one process each, which meet at a port of this machine."""
    words = [f"--num_machines={settings.processes}", f"--main_process_ip={group.address}"]
    words.append(f"--main_process_port={find_port()}")
    return [
        msgspec.structs.replace(settings, more=(*settings.more, *words, f"--machine_rank={rank}"))
        for rank in range(settings.processes)
    ]


def launch_command(settings: LaunchSettings, run: Path, number: int, previous: Path, tokens: float) -> list[str]:
    """The command that trains, and its arguments.

    Args: settings, run, number, previous, tokens: see `launch_stage`.
    """
    if settings.config != "none":
        config = resources.files("trl") / "accelerate_configs" / f"{settings.config}.yaml"
        how = ["--config_file", str(config)]
    else:
        how = ["--multi_gpu", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    how += ["--num_processes", str(settings.processes), "--main_process_port", "0", *settings.more]
    what = ["-m", STAGE_PROCESS, str(run), str(number), str(previous), str(tokens)]
    return [*settings.prefix, sys.executable, "-m", "accelerate.commands.launch", *how, *what]
