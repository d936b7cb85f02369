"""Refusals of bad input: one line that names the place and the value, and after a semicolon the remedy.

Tests name place and value, and no prose: how a sentence goes on may be improved without them. The remedy is there, and
the tests of the command line (`tests/experiments/cli/test_errors.py`) read some of them.
"""

import contextlib
from collections.abc import Iterator

import pytest

from lakewright.core_jax.errors import InputError


@contextlib.contextmanager
def refused(*parts: object, kind: type[Exception] = InputError) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expects an InputError in one line with these parts in this order, such as a place and a value, and a remedy.

    kind: of the error, if it is no InputError or a narrower one.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert_names(str(caught.value), *parts)


def assert_names(told: str, *parts: object) -> None:
    """A message is one line, holds these parts in this order, and says what to do."""
    assert len(told.splitlines()) == 1, told
    place = 0
    for part in map(str, parts):
        assert part in told[place:], f"{part!r} is missing in {told!r}"
        place = told.index(part, place) + len(part)
    assert "; " in told or ": expected " in told, f"no remedy in {told!r}"
