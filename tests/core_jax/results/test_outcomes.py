"""Outcomes: every plan is counted once, parts add up to the whole."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.results import BoardOutcomes, pool, without
from lakewright.core_jax.types import FAILURE_NAMES, Failure

plans = st.lists(st.tuples(st.sampled_from(list(Failure)), *[st.booleans()] * 3), max_size=20)


def counted(some) -> BoardOutcomes:
    failure, makespan, cost, waits = (np.array([plan[n] for plan in some], (int, bool)[n > 0]) for n in range(4))
    return BoardOutcomes.count(failure, makespan, cost, waits)


@settings(deadline=None, max_examples=50)
@given(plans)
def test_every_plan_is_counted_once_by_its_outcome(some):
    found = counted(some)
    assert found.boards == len(some) == found.valid + sum(found.failures.values())
    assert found.valid == sum(failure == Failure.NONE for failure, *_ in some)
    assert found.optimal_makespan == sum(failure == Failure.NONE and best for failure, best, _, _ in some)
    assert found.optimal_sum_of_costs == sum(failure == Failure.NONE and best for failure, _, best, _ in some)
    assert found.wait_valid == sum(failure == Failure.NONE and waits for failure, *_, waits in some)
    assert list(found.failures) == list(FAILURE_NAMES[1:])


@settings(deadline=None, max_examples=50)
@given(plans, plans)
def test_parts_add_up_to_the_whole(some, others):
    whole = pool([counted(some), counted(others)])
    assert whole == counted(some + others)
    assert without(whole, counted(some)) == counted(others)
