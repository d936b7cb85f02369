"""Commands called in this process, and a board on which agents cannot pass."""

from pathlib import Path

import msgspec
import pytest

from core_jax.rows import Row, VerdictRow
from experiments.cli import main

APART = Row("apart", 3, 2, [".H.", ".H.", ".H."], [(0, 0), (1, 0)], [(0, 2), (2, 0)])


def tell(capsys: pytest.CaptureFixture, *arguments: object) -> tuple[int, str, list[str]]:
    """Runs a command in this process: exit code, what it printed, and its lines on standard error."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    return code, out, err.splitlines()


def verdicts(path: Path) -> list[VerdictRow]:
    return msgspec.json.Decoder(VerdictRow).decode_lines(path.read_bytes())
