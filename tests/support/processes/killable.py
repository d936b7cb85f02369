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
from pathlib import Path

from tests.support.processes.commands import surroundings


@contextlib.contextmanager
def server(
    kind: str, said: Path | None = None, python: str | Path = sys.executable, **environment: str
) -> Iterator[subprocess.Popen]:
    """A process whose children do work of a kind (the names of `killable_work.KINDS`).

    said: the file that gets what they write to standard error. python: what runs it. environment: changes to theirs.
    """
    program = [str(python), "-m", "tests.support.processes.killable_work", kind]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(said.open("ab")) if said else None
        given = surroundings() | environment
        process = stack.enter_context(subprocess.Popen(program, env=given, stderr=errors, **pipes))
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


def serve(work: Callable[[str], int | None]) -> None:
    """Does the work of each line of standard input in a child; prints its process id, then its exit code.

    The work returns its exit code, or None for 0.
    """
    for line in sys.stdin:
        process = os.fork()
        if not process:
            _child(work, line.strip())
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def _child(work: Callable[[str], int | None], line: str) -> None:
    os.setsid()
    sys.stdout = sys.stderr  # standard output is for the server
    try:
        os._exit(work(line) or 0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
