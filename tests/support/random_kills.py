"""SIGKILL at random instants: a command, or one of its workers, is killed again and again until it has ended.

As a program it does the work of command lines, given as JSON, in children that a test may kill: all that they import is
imported once.
"""

import contextlib
import dataclasses
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from experiments.benchmark import TIERS
from tests.support.generated_rows import surroundings
from tests.support.killed_build import SMALL
from tests.support.power_cuts import alive, begin, serve

IMPORTED = (
    *("core_jax.solver.solver", "core_jax.generator.generator", "experiments.sweep.runner", "experiments.cli"),
    *("experiments.benchmark.builder", "experiments.evaluation.evaluator", "experiments.board_files.solving"),
)
LEARNED = ("experiments.loop.closed_loop", "experiments.study.runner")  # with the training libraries
FEW_MADE_UP = 50  # examples for the engineer of a tiny run
LONGEST_GOODBYE = 20.0  # seconds within which workers end after the command that began them


@dataclasses.dataclass
class Kills:
    """What a test of random kills did: commands and workers killed, and ends reached."""

    commands: int = 0
    workers: int = 0
    ends: int = 0

    @property
    def instants(self) -> int:
        return self.commands + self.workers


@contextlib.contextmanager
def server(*which: str) -> Iterator[subprocess.Popen]:
    """A process whose children do command lines; which: `learned` for those that train."""
    program = [sys.executable, "-m", "tests.support.random_kills", *which]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(program, env=surroundings(), **pipes) as process:
        try:
            yield process
        finally:
            process.stdin.close()


class Command:
    """Command lines that work on the same output side by side, such as the shards of a sweep."""

    def __init__(self, servers: list[subprocess.Popen], lines: list[list[str]]) -> None:
        self.servers, self.lines = servers, lines

    def run(self) -> float:
        """Runs it undisturbed; returns how many seconds it took."""
        begun = time.monotonic()
        children = [begin(server, json.dumps(line)) for server, line in zip(self.servers, self.lines, strict=True)]
        codes = [int(server.stdout.readline()) for server in self.servers]
        assert codes == [0] * len(codes), f"{self.lines} ended with {codes}"
        for child in children:
            assert_gone(child)
        return time.monotonic() - begun

    def killed(self, moment: float, kills: Kills, rng: np.random.Generator) -> bool:
        """Runs it and kills its first process after a moment, or one of its workers; whether all of it ended."""
        children = [begin(server, json.dumps(line)) for server, line in zip(self.servers, self.lines, strict=True)]
        ended = select.select([self.servers[0].stdout], [], [], moment)[0]
        victim = children[0]
        workers = sorted(session(victim) - {victim})
        if not ended and workers and rng.random() < 0.5:
            kills.workers += _kill(int(rng.choice(workers)))
        elif not ended:
            kills.commands += _kill(victim)
        codes = [int(server.stdout.readline()) for server in self.servers]
        for child in children:
            assert_gone(child)
        assert set(codes) <= {0, -signal.SIGKILL}, f"{self.lines} ended with {codes}"
        return not any(codes)


def kill_at_random(command: Command, out: Path, state: Callable[[Path], object], instants: int, seed: int) -> Kills:
    """Kills `command` at so many random instants, begun again each time, and anew wherever it came to its end.

    out: what it writes, which is removed before it begins anew. state: what must be the same of it at every end.
    """
    kills, rng = Kills(), np.random.default_rng(seed)
    command.run()  # compiles
    end = state(out)
    _remove(out)
    longest = command.run()
    _check(state, out, end)
    _remove(out)
    while kills.instants < instants:
        if command.killed(rng.uniform(0, longest), kills, rng):
            kills.ends += 1
            _check(state, out, end)
            _remove(out)
    command.run()
    kills.ends += 1
    _check(state, out, end)
    return kills


def session(leader: int) -> set[int]:
    """The processes that live in the session that a child of `serve` leads."""
    return {process for process in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session_of(process) == leader}


def assert_gone(leader: int) -> None:
    """Nothing of a session is left, at once or soon."""
    deadline = time.monotonic() + LONGEST_GOODBYE
    while left := {process for process in session(leader) if alive_still(process)}:
        assert time.monotonic() < deadline, f"processes {left} go on alone"
        time.sleep(0.02)


def alive_still(process: int) -> bool:
    """As `alive`, also of a process that ends meanwhile."""
    try:
        return alive(process)
    except OSError:
        return False


def _session_of(process: int) -> int | None:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[3]) if fields[0] != "Z" else None


def _kill(process: int) -> int:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def _check(state: Callable[[Path], object], out: Path, end: object) -> None:
    assert state(out) == end, f"{out} ended differently after a kill"


def _remove(out: Path) -> None:
    for path in (out, out.with_name(f".{out.name}.parts")):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _main(learned: bool) -> None:
    TIERS["small"] = SMALL  # before the command line reads their names
    for module in (*IMPORTED, *(LEARNED if learned else ())):
        importlib.import_module(module)
    if learned:
        importlib.import_module("experiments.loop.training.warmup").SYNTHETIC = FEW_MADE_UP
    serve(importlib.import_module("tests.support.killed_commands").run)


if __name__ == "__main__":
    _main(sys.argv[1:] == ["learned"])
