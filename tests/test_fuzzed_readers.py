"""Readers under coverage-guided fuzzing: whatever a file holds, it is read or refused in one line."""

import os
from pathlib import Path

import pytest

from tests.support.tools.own_environments import own_environment, run_there

SECONDS = os.environ.get("LAKEWRIGHT_FUZZ", "60")  # of processor time for each reader
READERS = ("rows", "configs", "specs", "evidence", "checkpoints", "ggufs")


@pytest.mark.deep
@pytest.mark.parametrize("name", READERS)
def test_whatever_a_file_holds_it_is_read_or_refused_in_one_line(tmp_path, name, capsys):
    python = own_environment("atheris", "atheris==3.0.0")
    said = run_there(python, "-m", "tests.support.tools.fuzzed_readers", name, tmp_path, SECONDS).stdout
    found: list[Path] = [path for path in (tmp_path / "found").iterdir() if path.suffix != ".input"]
    assert not found, found[0].read_text()
    with capsys.disabled():
        print(said.splitlines()[-1])
    assert f"{name}: " in said
