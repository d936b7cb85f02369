"""The bounds of numbers about answers: what a reward, a count or a length may be, asked wherever one comes in.

An environment's verdicts, recorders, readers of outcomes and traces, and an engineer's state all ask here, so that
what one of them lets through the next one can compute with.
"""

from typing import Annotated, Any

import msgspec

MOST_REWARD = 1e100  # in size; squares of larger ones are infinite
MOST_COUNT = 2**53 - 1  # every reader of JSON has whole numbers up to here exactly

WholeNumber = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNT)]
"""A count or a length, such as the tokens of an answer or the number of a version."""


def is_reward(value: Any) -> bool:
    """Return True if this is a finite number of at most MOST_REWARD in size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST_REWARD <= value <= MOST_REWARD


def is_spread(value: Any) -> bool:
    """Return True if this can be how far rewards are apart, such as their standard deviation."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2 * MOST_REWARD


def is_whole_number(value: Any) -> bool:
    """Return True if this is an int from 0 to MOST_COUNT."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNT
