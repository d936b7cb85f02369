"""What a command says of bad input."""

import pytest

from tests.support.command_lines import tell


def assert_told(capsys: pytest.CaptureFixture, arguments: tuple, *parts: str) -> None:
    """The command ends with 2, prints nothing, and its only line on standard error holds `parts` in order."""
    code, out, told = tell(capsys, *arguments)
    assert (code, out, len(told)) == (2, "", 1), told
    assert told[0].startswith("lakewright")
    place = 0
    for part in parts:
        assert part in told[0][place:], f"{part!r} is missing in {told[0]!r}"
        place = told[0].index(part, place) + len(part)
