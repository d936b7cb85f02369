"""Pieces of work for pools of processes: some note that they began, some fail, some are slow.

As a program: works on three pieces in two processes, `python -m tests.support.processes.pool_work FOLDER`.
"""

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from tqdm import tqdm

from lakewright.core_jax.support import write_atomically
from lakewright.experiments.jobs.executors import Local, Task, as_finished


def noted(folder: Path, item: str) -> str:
    """Notes that an item was begun, and does what it says: `die`, `die once`, find a `full disk`, or be `slow`."""
    begun = len(notes(folder, (item,))[item])
    (folder / f"{item}.{begun}").touch()
    if item == "die" or (item == "die once" and not begun):
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "full disk":
        raise OSError(28, "No space left on device", "shard.parquet")
    if item.startswith("slow"):
        time.sleep(0.05)
    return item.upper()


def notes(folder: Path, items: tuple[str, ...]) -> dict[str, list[Path]]:
    """How often each item was begun."""
    return {item: sorted(folder.glob(f"{item}.*")) for item in items}


def slow_square(piece: int, folder: Path) -> int:
    """Writes its process id into the folder, and takes long unless the folder holds `hurry`."""
    write_atomically(folder / f"{piece}.pid", str(os.getpid()).encode())
    if not (folder / "hurry").exists():
        time.sleep(600)
    return tqdm(total=piece).n + piece * piece  # a bar has a lock


def be_quiet() -> None:
    """Prints nothing on standard error from here on."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def gpus_of(_: object) -> str:
    """The GPUs that this process may use."""
    return os.environ["CUDA_VISIBLE_DEVICES"]


if __name__ == "__main__":
    where = Path(sys.argv[1])
    with Local(2, Task(prepare=be_quiet)) as executor:
        found = [
            (piece, done.result())
            for piece, done in as_finished(executor, partial(slow_square, folder=where), [1, 2, 3])
        ]
    (where / "found").write_text(str(sorted(found)))
