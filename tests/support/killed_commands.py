"""Reads command lines and runs each, in parts of few rows, in a child that a test may kill."""

import json
import sys

import pytest

from core_jax.rows import chunks
from experiments.cli import main
from experiments.resumable import parts
from tests.support.power_cuts import serve


def few_rows_a_part(patch: pytest.MonkeyPatch, rows: int = 8) -> None:
    """Makes parts as small as their writing allows."""
    for name in ("FEWEST_ROWS", "SOME_ROWS", "ROWS_A_KIND", "MOST_ROWS"):
        patch.setattr(parts, name, rows)
    patch.setattr(chunks, "CHUNK_ROWS", rows)
    patch.setattr(chunks, "CHUNK_BYTES", 1)  # a line at a time


def run(line: str) -> None:
    """Runs a command line, given as JSON."""
    with pytest.MonkeyPatch.context() as patch:
        few_rows_a_part(patch)
        sys.stdout = sys.stderr  # standard output is for the server
        if main(json.loads(line)):
            raise RuntimeError(f"{line} failed")


if __name__ == "__main__":
    serve(run)
