"""A program that draws problems again in its own process, with another hash seed, for `check_environment`.

`python -m lakewright.engineer.testing.redraw MAKER [ARGUMENT]`: `MAKER` is a class or function, `FILE.py:Class` or
`module:function`, that gives the environment. Standard input has the draws in JSON, standard output gets the problems.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence

import msgspec

from lakewright.engineer.cells import Cell
from lakewright.engineer.environment import Problem
from lakewright.engineer.plugins import load_class

Case = tuple[Cell, int, int]
YEAR = 365 * 86400.0


def draw_elsewhere(maker: Sequence[str], cases: Sequence[Case], limit: float) -> list[Problem] | str:
    """The problems of some draws as another process makes them; where it fails, why.

    maker: the words of the command. limit: seconds.
    """
    command = [sys.executable, "-m", "lakewright.engineer.testing.redraw", *maker]
    hashes = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    try:
        ended = subprocess.run(
            command,
            input=msgspec.json.encode(cases),
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": hashes},
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {limit:g} s"
    if ended.returncode:
        return (ended.stderr.decode(errors="replace").strip().splitlines() or ["it ended without a word"])[-1]
    return msgspec.json.decode(ended.stdout, type=list[Problem])


def main(arguments: Sequence[str]) -> None:
    """Reads draws from standard input and writes their problems to standard output.

    The clock is a year ahead, so that a generator that reads it is found.
    """
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that what the environment prints is not read as an answer
    now = time.time
    time.time = lambda: now() + YEAR
    maker, *rest = arguments
    environment = load_class(maker, {}, "environment", ())(*rest)
    cases = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Case])
    found = [environment.draw_one(*case) for case in cases]
    output.write(msgspec.json.encode(found))
    output.close()


if __name__ == "__main__":
    main(sys.argv[1:])
