"""A file of a million rows, ten of them bad, as a user solves it."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.core_jax.rows import column_writer, columns_in_turn

ROWS, DRAWN = 1_000_000, 50_000
LATER = 3.0, 6.0, 5.0  # seconds after which the command is killed, each time anew
# A place in the file, what is changed there, and what is said of it.
REPLACED = {
    7: (b'{"id":3}', "field 'size' is missing; add it"),
    100_003: (b"not JSON", "not JSON (JSON is malformed: invalid character (byte 4)); write one object per line"),
    500_000: (b"\xff\xfe", "not JSON (JSON is malformed: invalid character (byte 0)); write one object per line"),
    700_000: (b"[]", "expected an object, got []"),
    999_999: (b'{"id":"a"', "not JSON (Input data was truncated); write one object per line"),
}
CHANGED = {
    200_017: (b'"size":3', b'"size":6', "grid has 3 lines for size 6; give one line per row of the board"),
    300_001: (b'"agents":2', b'"agents":3', "starts has 2 cells for 3 agents; give one per agent"),
    400_000: (b'"goals":[', b'"goals":[[9,9],', "goals has 3 cells for 2 agents; give one per agent"),
    600_000: (b'"grid":["', b'"grid":["X', "not 3 cells long; give one cell per column"),
    800_000: (b'"hole_ratio":0.2', b'"hole_ratio":"x"', "hole_ratio: 'x' does not fit"),
}


@pytest.fixture
def million(tmp_path) -> Path:
    """The file."""
    config = EnvConfig.single(3, 2, hole_ratio=0.2, wait_ratio=0.3)
    with column_writer(tmp_path / "drawn.jsonl") as write:
        write(columns_in_turn([generate(config, 0, DRAWN)], [config]))
    drawn = (tmp_path / "drawn.jsonl").read_bytes().splitlines()
    with open(tmp_path / "million.jsonl", "wb") as file:
        for place, line in enumerate(itertools.islice(itertools.cycle(drawn), ROWS)):
            if place in REPLACED:
                line = REPLACED[place][0]
            if place in CHANGED:
                line = line.replace(*CHANGED[place][:2])
            file.write(line + b"\n")
    return tmp_path / "million.jsonl"


def solve(source: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "lakewright.experiments.cli", "solve", str(source), "--out", str(out)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.deep
def test_ten_bad_rows_of_a_million_are_named_and_the_rest_is_solved_to_the_same_bytes_whatever_is_killed(million):
    whole, killed = million.with_name("whole.parquet"), million.with_name("killed.parquet")
    undisturbed = solve(million, whole)
    said = undisturbed.communicate()[1]
    assert undisturbed.returncode == 1, "bad rows were left out"
    said_of = {place: text for place, (*_, text) in (REPLACED | CHANGED).items()}
    for place, text in said_of.items():
        line = next(line for line in said.splitlines() if f"{million}:{place + 1}: " in line)
        assert text in line, f"line {place + 1}"
    assert said.count(f"{million}:") == len(said_of), "nothing else is wrong"
    for seconds in LATER:
        command = solve(million, killed)
        try:
            command.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            command.kill()
            command.communicate()
    last = solve(million, killed)
    assert said_of[7] in last.communicate()[1]
    assert last.returncode == 1
    assert killed.read_bytes() == whole.read_bytes(), "kills leave no trace"
