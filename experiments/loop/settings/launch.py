"""Training in several processes: the loop stays one process, and `accelerate launch` runs a stage's training.

The processes end with the one that launched them, even if that one is killed, so a resumed run meets none of them.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, starter

BAD_INPUT = 2
PATIENCE = 1.0  # seconds between two calls of `on_wait`
ERROR_PREFIX = "lakewright: "  # begins the line that reports bad input


class LaunchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of training processes, and their launch."""

    processes: Count = 1
    """Training processes in all; with 1 and no config, training stays in the loop's own process."""
    config: Literal["none", "single_gpu", "multi_gpu", "zero1", "zero2", "zero3", "fsdp1", "fsdp2"] = "none"
    """One of the accelerate configs that TRL ships; none is plain data parallel training."""
    more: tuple[str, ...] = ()
    """Further arguments of `accelerate launch`, such as --num_machines=2 and --machine_rank=0."""
    prefix: tuple[str, ...] = ()
    """Words before the launch command, such as those of srun."""

    @property
    def elsewhere(self) -> bool:
        """Return True if training runs in processes of its own."""
        return self.processes > 1 or self.config != "none"


def launch_stage(
    settings: LaunchSettings,
    run: Path,
    number: int,
    previous: Path,
    tokens: float,
    log: Path,
    on_wait: Callable[[], object],
) -> None:
    """Trains stage `number` of the run in a folder, from the checkpoint `previous`, until `tokens` are generated.

    settings: of the launch. run: the folder. log: the file for the output of the processes. on_wait: called every
    second. Raises InputError if the processes refuse their input or fail.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, **starter()}
    with open(log, "wb") as words:
        process = subprocess.Popen(
            launch_command(settings, run, number, previous, tokens), env=env, stdout=words, stderr=subprocess.STDOUT
        )
        try:
            while process.poll() is None:
                on_wait()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
        finally:
            process.terminate()
    if process.returncode:
        refused = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(ERROR_PREFIX)]
        failed = f"stage {number}: `accelerate launch` ended with {process.returncode}; its output is in {log}"
        raise InputError(refused[0].removeprefix(ERROR_PREFIX) if refused else failed)


def launch_command(settings: LaunchSettings, run: Path, number: int, previous: Path, tokens: float) -> list[str]:
    """The command that trains, and its arguments, which are those of `launch_stage`."""
    if settings.config != "none":
        config = resources.files("trl") / "accelerate_configs" / f"{settings.config}.yaml"
        how = ["--config_file", str(config)]
    else:
        how = ["--multi_gpu", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    how += ["--num_processes", str(settings.processes), "--main_process_port", "0", *settings.more]
    what = [
        "-m",
        "lakewright.experiments.loop.training.stage_process",
        str(run),
        str(number),
        str(previous),
        str(tokens),
    ]
    return [*settings.prefix, sys.executable, "-m", "accelerate.commands.launch", *how, *what]
