"""The executor that the options of a command name, opened once it is known what each of its tasks takes."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import cores
from lakewright.experiments.jobs.executors.executor import SERIAL, Executor, Task
from lakewright.experiments.jobs.executors.local_processes import Local
from lakewright.experiments.jobs.executors.this_machine import MANY_CORES, Growing, Threads, has_gpu

EXECUTORS = ("local", "ray")


@dataclasses.dataclass(frozen=True)
class ExecutorChoice:
    """Where tasks run.

    name: `local` or `ray`. workers: processes of this machine, without it this process, or all of the machine for tasks
    that spread; of a Ray cluster the tasks at a time, without it as many as it has room for.
    """

    name: str = "local"
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers is {self.workers}; give at least 1")

    @contextlib.contextmanager
    def open(self, task: Task, folder: Path | None = None) -> Iterator[Executor]:
        """The executor, which ends with the block.

        task: what each task needs. folder: where tasks write, if they do. Raises InputError for an unknown name.
        """
        if self.name == "ray":
            from lakewright.experiments.jobs.executors.ray_cluster import Ray

            # Ray prints what happens to its nodes on standard output, which is for results.
            with contextlib.redirect_stdout(sys.stderr), Ray(self.workers, task, folder) as cluster:
                yield cluster
        elif self.workers:
            with Local(self.workers, task) as processes:
                yield processes
        elif task.spreads and (cores() >= MANY_CORES or has_gpu()):
            with Threads() if has_gpu() else Growing(task) as machine:
                yield machine
        else:
            yield SERIAL


HERE = ExecutorChoice()
