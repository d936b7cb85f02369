"""Reads run folders line by line and runs a tiny loop in each, in a child that a test may kill.

What must be imported is imported once.
"""

from pathlib import Path

from experiments.loop.records import RunFolder
from tests.support.generated_rows import SMALL
from tests.support.power_cuts import serve
from tests.support.tiny_policy import tiny_run
from tests.support.tiny_runs import run_loop

SETTINGS = tiny_run(SMALL, teacher="rules")


def run(line: str) -> None:
    """Runs the loop in the folder `line` as the command does."""
    folder = RunFolder(Path(line))
    with folder.locked():
        run_loop(SETTINGS, folder)


if __name__ == "__main__":
    serve(run)
