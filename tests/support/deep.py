"""Which cases of a test belong to every run of the suite, and how many examples of a property."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

MORE = int(os.environ.get("LAKEWRIGHT_EXAMPLES", "1"))  # times as many examples of each property, in `make test-deep`


def count_examples(few: int) -> int:
    """The examples of a property that a run tries: `few`, and many times as many in `make test-deep`."""
    return few * MORE


def keep_quick(cases: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """The cases of a `parametrize`: the quick in every run, the others in `make test-deep`. A tuple holds arguments."""
    every = list(cases)
    unknown = [case for case in quick if case not in every]
    assert not unknown, f"{unknown} are no cases"
    return [case if case in quick else pytest.param(*_arguments(case), marks=pytest.mark.deep) for case in every]


def _arguments(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
