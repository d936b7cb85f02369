"""Reads run folders line by line and runs a tiny loop in each, in a child that a test may kill.

The child's process id is printed, then its exit code; what must be imported is imported once.
"""

import os
import sys
import traceback
from pathlib import Path

from loops import run_loop
from samples import SMALL
from tiny import tiny_run

from experiments.runs import RunFolder

SETTINGS = tiny_run(SMALL, teacher="rules")


def child(folder: RunFolder) -> None:
    """Runs the loop as the command does, in a session of its own, and ends."""
    os.setsid()
    try:
        with folder.locked():
            run_loop(SETTINGS, folder)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def serve() -> None:
    """A child for each line of standard input."""
    for line in sys.stdin:
        process = os.fork()
        if not process:
            child(RunFolder(Path(line.strip())))
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
