"""SIGKILL at random instants: a command, or one of its workers, is killed again and again until it has ended."""

import dataclasses
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.support.processes.killable import begin, code_of
from tests.support.processes.watching import LONGEST_GOODBYE, assert_session_ends, session, title


@dataclasses.dataclass
class Kills:
    """What was killed, and what was there whenever the command came to its end."""

    undisturbed: object  # the state of what was written when nobody killed anything
    commands: int = 0
    workers: int = 0
    ends: list[object] = dataclasses.field(default_factory=list)  # the states at every end after that

    @property
    def instants(self) -> int:
        return self.commands + self.workers

    def __str__(self) -> str:
        same = sum(end == self.undisturbed for end in self.ends)
        differ = "".join(f"; {name} differs" for name in sorted(self._differing()))
        ends = f"{same} of {len(self.ends)} ends the same{differ}"
        return f"{self.commands} commands and {self.workers} workers killed; {ends}"

    def _differing(self) -> set[str]:
        """The parts of a state that were not the same at some end, where it has names for them."""
        states = [state for state in (self.undisturbed, *self.ends) if isinstance(state, dict)]
        names = {name for state in states for name in state}
        return {name for name in names if any(state.get(name) != states[0].get(name) for state in states)}


class Command:
    """Command lines that work on the same output side by side, such as the shards of a sweep.

    workers: the beginning of the titles of the processes that may be killed apart; by default all its children are.
    goodbye: the seconds within which all its processes end after it.
    """

    def __init__(
        self,
        servers: list[subprocess.Popen],
        lines: list[list[str]],
        workers: str = "",
        goodbye: float = LONGEST_GOODBYE,
    ) -> None:
        self.servers, self.lines, self.workers, self.goodbye = servers, lines, workers, goodbye

    def run(self) -> float:
        """Runs it undisturbed; returns how many seconds it took."""
        begun = time.monotonic()
        codes = self._codes(self._begin())
        assert codes == [0] * len(codes), f"{self.lines} ended with {codes}"
        return time.monotonic() - begun

    def killed(self, moment: float, kills: Kills, rng: np.random.Generator) -> bool:
        """Runs it and kills its first process after a moment, or one of its workers; whether all of it ended."""
        children = self._begin()
        ended = select.select([self.servers[0].stdout], [], [], moment)[0]
        victim = children[0]
        workers = sorted(one for one in session(victim) - {victim} if title(one).startswith(self.workers))
        if not ended and workers and rng.random() < 0.5:
            kills.workers += _kill(int(rng.choice(workers)))
        elif not ended:
            kills.commands += _kill(victim)
        codes = self._codes(children)
        assert set(codes) <= {0, -signal.SIGKILL}, f"{self.lines} ended with {codes}"
        return not any(codes)

    def _begin(self) -> list[int]:
        return [begin(server, json.dumps(line)) for server, line in zip(self.servers, self.lines, strict=True)]

    def _codes(self, children: list[int]) -> list[int]:
        codes = [code_of(server) for server in self.servers]
        for child in children:
            assert_session_ends(child, self.goodbye)
        return codes


def kill_at_random(command: Command, out: Path, state: Callable[[Path], object], instants: int, seed: int) -> Kills:
    """Kills `command` at so many random instants; begins it again after each, and from nothing after each end.

    out: what it writes, removed before it begins from nothing. state: what of it is compared.
    """
    rng = np.random.default_rng(seed)
    command.run()  # compiles
    kills = Kills(state(out))
    _remove(out)
    longest = command.run()
    kills.ends.append(state(out))
    _remove(out)
    while kills.instants < instants:
        if command.killed(rng.uniform(0, longest), kills, rng):
            kills.ends.append(state(out))
            _remove(out)
    command.run()
    kills.ends.append(state(out))
    return kills


def _kill(process: int) -> int:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def _remove(out: Path) -> None:
    for path in (out, out.with_name(f".{out.name}.parts")):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
