"""Which cases of a test belong to every run of the suite."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def keep_quick(cases: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """The cases of a `parametrize`: the quick in every run, the others in `make test-deep`. A tuple holds arguments."""
    every = list(cases)
    unknown = [case for case in quick if case not in every]
    assert not unknown, f"{unknown} are no cases"
    return [case if case in quick else pytest.param(*_arguments(case), marks=pytest.mark.deep) for case in every]


def _arguments(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
