"""The search for the smallest case in which a property fails, until a deadline."""

import itertools
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import NamedTuple, TypeVar

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from lakewright.engineer.testing.isolation import CallError
from lakewright.engineer.testing.report import Fault

T = TypeVar("T")

LEAST = 5  # cases of each property, if they take no more than LATE; else one
LATE = 1.0  # seconds
SHRINKING = 3.0  # seconds, for the smallest case of a fault that is found late


class Deadline(NamedTuple):
    """The moment at which a property's cases end, by `time.monotonic`; infinite for one round of cases."""

    end: float = math.inf

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """The deadline in some seconds from now."""
        return cls(time.monotonic() + seconds)

    def count_seconds(self) -> float:
        """The seconds that are left; below 0 after the deadline."""
        return self.end - time.monotonic()

    def is_over(self, grace: float = 0.0) -> bool:
        """Return True after the deadline and `grace` seconds more."""
        return self.count_seconds() < -grace

    def extend(self, seconds: float) -> "Deadline":
        """This deadline, or a later one if fewer seconds than these are left."""
        return max(self, Deadline.after(seconds))


class _TimeUpError(BaseException):
    """Ends a search; no Exception because hypothesis takes these for faults."""


def find_smallest(
    name: str,
    examples: Iterable[T],
    strategy: SearchStrategy[T] | None,
    attempt: Callable[[T], object],
    show: Callable[[T], str],
    deadline: Deadline,
    most: int = 100,
) -> Fault | None:
    """The fault with the smallest case in which `attempt` raises CallError; None if it never does.

    Args:
        name: the name of the property.
        examples: cases to try first, from small to large.
        strategy: further cases, which hypothesis tries and shrinks.
        attempt: tries a case.
        show: describes a case to people.
        deadline: the end; later only the first example and LEAST cases are tried.
        most: cases of the strategy in a round. Rounds follow each other until the deadline; if it is infinite, there is
            one.
    """

    def find_fault(case: T) -> Fault | None:
        try:
            attempt(case)
        except CallError as error:
            return Fault(name, str(error), show(case))
        return None

    for place, example in enumerate(examples):
        if place and deadline.is_over():
            break
        if fault := find_fault(example):
            return fault
    return None if strategy is None else _search(strategy, find_fault, deadline, most)


def _search(
    strategy: SearchStrategy[T], find_fault: Callable[[T], Fault | None], deadline: Deadline, most: int
) -> Fault | None:
    """The fault of the smallest case of a strategy, in rounds of `most` cases."""
    faults: list[Fault] = []
    tried = itertools.count(1)

    def fails_in_time(case: T) -> bool:
        late = LATE if (number := next(tried)) <= LEAST else 0.0
        if number > 1 and deadline.is_over(SHRINKING if faults else late):
            raise _TimeUpError
        if fault := find_fault(case):
            faults.append(fault)
        return fault is not None

    chosen = settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    for number in itertools.count():
        with suppress(HypothesisException, _TimeUpError):
            find(strategy, fails_in_time, settings=chosen, random=Random(number))
        if faults or deadline.end == math.inf or deadline.is_over():
            break
    # Faults that cannot be reproduced end the search, too, so the last case that failed is the smallest.
    return faults[-1] if faults else None
