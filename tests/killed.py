"""Reads run folders line by line and runs a tiny loop in each, in a child that a test may kill.

What must be imported is imported once.
"""

from pathlib import Path

from cuts import serve
from loops import run_loop
from samples import SMALL
from tiny import tiny_run

from experiments.runs import RunFolder

SETTINGS = tiny_run(SMALL, teacher="rules")


def run(line: str) -> None:
    """Runs the loop in the folder `line` as the command does."""
    folder = RunFolder(Path(line))
    with folder.locked():
        run_loop(SETTINGS, folder)


if __name__ == "__main__":
    serve(run)
