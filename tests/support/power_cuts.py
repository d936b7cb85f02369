"""Processes that end at any instant: a power cut at a renaming, and children that a test may kill."""

import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE = 120  # seconds


class PowerCutError(BaseException):
    """The end of a process that cleans nothing up."""


def cut_power(patch: pytest.MonkeyPatch, renamings: int, before: bool) -> None:
    """The process ends after so many renamings, at once or just before the next; nothing is cleaned up."""
    done, dead = 0, False

    def ending(real):
        def rename(source, target):
            nonlocal done, dead
            if ".part/" in str(target):  # inside what is not yet in its place
                return real(source, target)
            dead = before and done == renamings
            if not dead:
                real(source, target)
                done += 1
                dead = not before and done == renamings
            if dead:
                raise PowerCutError
            return None

        return rename

    def unless_dead(real):
        return lambda *given, **options: None if dead else real(*given, **options)

    for owner, name in ((os, "replace"), (os, "rename")):
        patch.setattr(owner, name, ending(getattr(owner, name)))
    for owner, name in ((Path, "unlink"), (shutil, "rmtree"), (os, "unlink"), (os, "remove")):
        patch.setattr(owner, name, unless_dead(getattr(owner, name)))


def alive(process: int) -> bool:
    """Whether a process works, or sleeps, still."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def begin(server: subprocess.Popen, line: object) -> int:
    """Has a child of `serve` do the work of a line: its process id."""
    server.stdin.write(f"{line}\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.002)


def serve(work: Callable[[str], object]) -> None:
    """Does the work of each line of standard input in a child; tells its process id, then its exit code."""
    for line in sys.stdin:
        process = os.fork()
        if not process:
            _child(work, line.strip())
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def _child(work: Callable[[str], object], line: str) -> None:
    os.setsid()
    try:
        work(line)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
