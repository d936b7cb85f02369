"""Starts a process in one of several ways, and waits to be killed.

    python -m tests.support.processes.child_processes HOW NOTE

The started process ends with its starter, writes its process id to the file NOTE, and sleeps.
"""

import multiprocessing
import os
import subprocess
import sys
import time

from lakewright.core_jax.support import end_with_starter, starter, write_atomically
from lakewright.experiments.jobs.executors import Local

SECONDS = 120.0


def sleep(note: str) -> None:
    """What a started process does."""
    end_with_starter()
    write_atomically(note, str(os.getpid()).encode())
    time.sleep(SECONDS)


def work(note: str) -> None:
    """What a worker of a sweep does: a long piece of work."""
    write_atomically(note, str(os.getpid()).encode())
    time.sleep(SECONDS)


def submit_work(note: str) -> None:
    """Hands the work to a worker, and waits for it."""
    with Local(1) as executor:
        executor.submit(work, note).result()


def program(note: str) -> list[str]:
    """The command of a started program."""
    return [sys.executable, "-m", "tests.support.processes.child_processes", "sleep", note]


STARTED = {
    "by multiprocessing": lambda note: multiprocessing.get_context("spawn").Process(target=sleep, args=(note,)).start(),
    "as a program": lambda note: subprocess.Popen(program(note), env=os.environ | starter()),
    "by a program": lambda note: subprocess.Popen(
        ["sh", "-c", '"$@"; true', "sh", *program(note)], env=os.environ | starter()
    ),
    "as a worker of a sweep": submit_work,
}


if __name__ == "__main__":
    how, where = sys.argv[1:]
    if how == "sleep":
        sleep(where)
    started = STARTED[how](where)
    time.sleep(SECONDS)
