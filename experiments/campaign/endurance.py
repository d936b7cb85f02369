"""Commands that run for long, watched: what their processes take must not grow.

lakewright bench --endurance 60

A run whose boards are drawn while it trains, of many short stages, and a sweep of many small shards, each for so many
minutes after its first stage or shard. All processes of a command are counted together. The first third of the time is
for compiling and growing.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import psutil

from lakewright.experiments.bench import markdown

PAUSE = 2.0  # seconds between two looks
PATIENCE = 30  # minutes for the first stage or shard
FLAT = 0.05  # by which memory may grow from the second third of the time to the last
ENDLESS = 100_000  # stages, and boards of a cell
SWEEP = f"sizes = [3, 4]\nagents = [2]\nhole_ratios = [0.0, 0.2]\nboards = {ENDLESS * 100}\nshard = 256\n"
TINY = (
    *("horizon=8", "model.hidden=32", "model.layers=1", "model.heads=2", "model.mlp=32", f"stages={ENDLESS}"),
    *("warmup.steps=2", "warmup.batch=8", "warmup.fresh=true", "trial.boards=8", "trial.samples=2"),
    *("grpo.fresh=true", "grpo.steps=4", "grpo.prompts=4", "grpo.group=2", "validation.boards=2"),
)
HEAD = ("command", "minutes", "done", "MiB", "", "growth", "threads", "", "files", "", "processes", "", "flat")


class Look(msgspec.Struct, frozen=True):
    """What the processes of a command take at one moment: MiB that are theirs alone, threads, open files, and how many
    they are.
    """

    memory: float
    threads: int
    files: int
    processes: int


class Watched(msgspec.Struct, frozen=True):
    """A command that was watched for some minutes. done: how many stages or shards it finished.

    before, after: the means of the looks in the second third of the time and in the last of memory, and the most of all
    else.
    """

    command: str
    minutes: float
    done: int
    before: Look
    after: Look

    @property
    def growth(self) -> float:
        """By how much the memory grew, as a share."""
        return self.after.memory / self.before.memory - 1

    @property
    def flat(self) -> bool:
        """Whether something was finished and nothing grows."""
        counts = ("threads", "files", "processes")
        more = any(getattr(self.after, name) > getattr(self.before, name) for name in counts)
        return self.done > 0 and self.growth <= FLAT and not more


def endure(minutes: float, on_look: Callable[[int], object] = lambda looks: None) -> list[Watched]:
    """Watches the run and the sweep, each for so many minutes once it has finished something.

    on_look: gets 1 after each look.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "sweep.toml").write_text(SWEEP)
        run = ["run", "--preset", "cpu", "--teacher", "random", *TINY, "--out", str(folder / "run")]
        sweep = ["sweep", str(folder / "sweep.toml"), "--workers", "2", "--out", str(folder / "sweep")]
        return [
            watch("run", run, minutes, lambda: len([*(folder / "run").glob("stage_*/done.json")]), on_look),
            watch("sweep", sweep, minutes, lambda: len([*(folder / "sweep" / "shards").glob("*.json")]), on_look),
        ]


def watch(
    name: str, words: Sequence[str], minutes: float, done: Callable[[], int], on_look: Callable[[int], object]
) -> Watched:
    """Watches one command line once it has finished a piece of work, so that a slow machine shows as much; and ends it.

    Raises RuntimeError where the command ends, or finishes nothing in `PATIENCE` minutes.
    """
    looks: list[tuple[float, Look]] = []
    with _process(words) as process:
        first = _passed(process, words, time.monotonic(), PATIENCE)
        while not done():
            if next(first) > 1:
                raise RuntimeError(f"`lakewright {' '.join(words)}` finished nothing in {PATIENCE} minutes")
        for passed in _passed(process, words, time.monotonic(), minutes):
            if passed > 1:
                break
            looks.append((passed, _look(process)))
            on_look(1)
        finished = done()
    before, after = ([look for passed, look in looks if part <= 3 * passed < part + 1] for part in (1, 2))
    return Watched(name, minutes, finished, _summary(before), _summary(after))


def _passed(process: psutil.Popen, words: Sequence[str], begun: float, minutes: float) -> Iterator[float]:
    """Every two seconds the share of so many minutes that has passed. Raises RuntimeError where the process ends."""
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"`lakewright {' '.join(words)}` ended with {process.returncode}; run it by itself")
        yield (time.monotonic() - begun) / (60 * minutes)
        time.sleep(PAUSE)


def endurance_table(found: Sequence[Watched]) -> str:
    """As Markdown; of each pair of figures the first is of the second third of the time, the other of the last."""
    return "\n".join(markdown(HEAD, [_row(watched) for watched in found]))


@contextlib.contextmanager
def _process(words: Sequence[str]) -> Iterator[psutil.Popen]:
    """The command in a session of its own, which ends with the block."""
    program = [sys.executable, "-m", "lakewright.experiments.cli", *words]
    quiet = subprocess.DEVNULL
    with psutil.Popen(program, stdout=quiet, stderr=quiet, start_new_session=True) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _look(process: psutil.Process) -> Look:
    every = [process, *process.children(recursive=True)]
    seen = []
    for one in every:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess), one.oneshot():
            seen.append((one.memory_full_info().uss / 2**20, one.num_threads(), one.num_fds()))
    memory, threads, files = np.sum(seen, axis=0) if seen else (0, 0, 0)
    return Look(float(memory), int(threads), int(files), len(seen))


def _summary(looks: Sequence[Look]) -> Look:
    memory = float(np.mean([look.memory for look in looks]))
    most = (max(getattr(look, name) for look in looks) for name in ("threads", "files", "processes"))
    return Look(memory, *most)


def _row(watched: Watched) -> tuple[str, ...]:
    pairs = [
        f"{getattr(look, name):.0f}"
        for name in ("threads", "files", "processes")
        for look in (watched.before, watched.after)
    ]
    memory = (f"{watched.before.memory:.0f}", f"{watched.after.memory:.0f}", f"{100 * watched.growth:+.1f} %")
    return watched.command, f"{watched.minutes:g}", str(watched.done), *memory, *pairs, "yes" if watched.flat else "no"
