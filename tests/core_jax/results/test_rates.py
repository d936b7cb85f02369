"""Rates: intervals hold what a count does not contradict, pass@k is the mean over all choices."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from lakewright.core_jax.results import pass_at_k, wilson


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 500), st.integers(1, 500))
def test_an_interval_ends_where_the_count_is_1_96_standard_deviations_off(count, total):
    count = min(count, total)
    for share, end in zip(wilson(count, total), (0.0, 1.0), strict=True):
        assert 0 <= share <= 1
        off = (count / total - share) ** 2 * total
        assert off == pytest.approx(1.959964**2 * share * (1 - share)) or share == pytest.approx(end, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_intervals_are_those_of_scipy(count, total):
    count = min(count, total)
    found = binomtest(count, total).proportion_ci(method="wilson")
    assert wilson(count, total) == pytest.approx((found.low, found.high), abs=1e-9)


@pytest.mark.parametrize(("count", "total", "low", "high"), [(5, 10, 0.2366, 0.7634), (0, 20, 0, 0.1611), (0, 0, 0, 1)])
def test_wilson_intervals_are_those_of_the_textbook(count, total, low, high):
    assert wilson(count, total) == pytest.approx((low, high), abs=1e-4)


def test_pass_at_k_is_the_mean_over_all_choices_of_k_answers():
    right = [0, 1, 3, 5]
    for k in range(1, 6):
        drawn = [
            any(answer < count for answer in some) for count in right for some in itertools.combinations(range(5), k)
        ]
        rate, (low, high) = pass_at_k(right, 5, k)
        assert rate == pytest.approx(np.mean(drawn)), k
        assert 0 <= low < rate < high <= 1
