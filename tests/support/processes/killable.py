"""Work in children that a test may kill, begun by a server that has imported all that they need.

`server` starts one (tests/support/processes/killable_work.py); `begin` has it fork a child for a line, and `code_of`
waits for that child's end.
"""

import contextlib
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator

from tests.support.processes.commands import surroundings


@contextlib.contextmanager
def server(kind: str) -> Iterator[subprocess.Popen]:
    """A process whose children do work of a kind (the names of `killable_work.KINDS`)."""
    program = [sys.executable, "-m", "tests.support.processes.killable_work", kind]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(program, env=surroundings(), **pipes) as process:
        try:
            yield process
        finally:
            process.stdin.close()


def begin(server: subprocess.Popen, line: object) -> int:
    """Has a child do the work of a line: its process id, and that of its session."""
    server.stdin.write(f"{line}\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def code_of(server: subprocess.Popen) -> int:
    """The exit code of the child begun last, once it has ended; negative where a signal ended it."""
    return int(server.stdout.readline())


def serve(work: Callable[[str], object]) -> None:
    """Does the work of each line of standard input in a child; prints its process id, then its exit code."""
    for line in sys.stdin:
        process = os.fork()
        if not process:
            _child(work, line.strip())
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def _child(work: Callable[[str], object], line: str) -> None:
    os.setsid()
    sys.stdout = sys.stderr  # standard output is for the server
    try:
        work(line)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
