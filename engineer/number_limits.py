"""The bounds of numbers about answers: what a reward, a count or a length may be.

Verdicts, recorders, readers of outcomes and traces, and an engineer's state all ask here, so that each accepts what
others do.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import list_parts

MOST_REWARD = 1e100  # in size; squares of larger ones are infinite
MOST_COUNT = 2**53 - 1  # every reader of JSON has whole numbers up to here exactly
WholeNumber = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNT)]
"""A count or a length, such as the tokens of an answer or the number of a version."""


def is_reward(value: Any) -> bool:
    """Return True if this is a finite number of at most MOST_REWARD in size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST_REWARD <= value <= MOST_REWARD


def is_spread(value: Any) -> bool:
    """Return True if this is a finite number, at least 0 and not too large, as the spread of rewards must be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2 * MOST_REWARD


def is_whole_number(value: Any) -> bool:
    """Return True if this is an int from 0 to MOST_COUNT."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNT


def sum_lengths(answers: Sequence[Sequence[str]], tokens: Iterable[Iterable[int]]) -> list[int]:
    """The sums of the lengths of answers, a list for each problem.

    Raises InputError unless there is a whole number for each answer.
    """
    given = list_parts("tokens", tokens)
    if len(given) != len(answers):
        raise InputError(f"tokens: {len(given)} lists for {len(answers)} problems; give one for each")
    sums = []
    for texts, lengths in zip(answers, (list_parts("tokens: a list", part) for part in given), strict=True):
        if len(lengths) != len(texts) or not all(map(is_whole_number, lengths)):
            raise InputError(f"tokens: {list(lengths)!r:.60} for {len(texts)} answers; give a whole number for each")
        sums.append(sum(lengths))
    return sums
