"""The command `lakewright`, in this process and in one of its own."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from lakewright.core_jax.rows import VerdictRow
from lakewright.experiments import cli

HOUSE = Path(__file__).parents[3]


@functools.cache
def elsewhere() -> Path:
    """A folder that is kept until the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="lakewright-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def lakewright(capsys: pytest.CaptureFixture, *arguments: object) -> tuple[int, str, list[str]]:
    """Runs a command in this process: exit code, what it printed, and its lines on standard error."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    return code, out, err.splitlines()


def assert_refused(capsys: pytest.CaptureFixture, arguments: tuple, *parts: str) -> None:
    """The command ends with 2, prints nothing, and its only line on standard error holds `parts` in order."""
    code, out, lines = lakewright(capsys, *arguments)
    assert (code, out, len(lines)) == (2, "", 1), lines
    assert lines[0].startswith("lakewright")
    place = 0
    for part in parts:
        assert part in lines[0][place:], f"{part!r} is missing in {lines[0]!r}"
        place = lines[0].index(part, place) + len(part)


def verdicts(path: Path) -> list[VerdictRow]:
    """The rows that `verify` wrote."""
    return msgspec.json.Decoder(VerdictRow).decode_lines(path.read_bytes())


def surroundings() -> dict[str, str]:
    """The environment of another process: one thread, the tests' helpers in reach, and modules from where ours are."""
    places = [str(HOUSE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(places)}


def lakewright_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command as a user does, in a process of its own."""
    program = str(Path(sys.executable).with_name("lakewright"))
    given = [program, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, env=surroundings(), check=False, timeout=300)
