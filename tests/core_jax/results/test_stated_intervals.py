"""The 95 % intervals of rates hold the truth in 95 % of cases, by simulations of which the truth is known."""

import math

import numpy as np
import pytest

from lakewright.core_jax.results import mean_of_rates, pass_at_k, wilson
from tests.support.tools.calibration import assert_coverage

CASES = 1000
ANSWERS = 8
# How the chances of boards are spread, by the parameters of a beta distribution.
HARD, EASY, EVEN, ALMOST_NONE = (0.2, 8.0), (8.0, 0.2), (1.0, 1.0), (0.02, 4.0)


@pytest.mark.parametrize("problems", [1, 2, 5, 20, 100, 1000])
@pytest.mark.parametrize("spread", [EVEN, HARD, EASY], ids=["any", "almost all fail", "almost all succeed"])
def test_the_interval_of_a_valid_rate_holds_the_rate(problems, spread):
    """Claim: averaged over the rates that there may be, Wilson's interval holds the rate in at least 93 %."""
    rng = np.random.default_rng(problems)
    rates = rng.beta(*spread, CASES)
    counts = rng.binomial(problems, rates)
    known = {count: wilson(count, problems) for count in set(counts.tolist())}
    low, high = zip(*(known[count] for count in counts.tolist()), strict=True)
    assert_coverage(low, high, rates, 0.93)


def chance_within(k: int, a: float, b: float) -> float:
    """E[1 - (1 - p)^k] for p of a beta distribution: the pass@k that is estimated."""
    return 1 - math.exp(math.lgamma(b + k) + math.lgamma(a + b) - math.lgamma(b) - math.lgamma(a + b + k))


@pytest.mark.parametrize("boards", [1, 5, 20, 100])
@pytest.mark.parametrize("k", [1, 2, ANSWERS])
@pytest.mark.parametrize("spread", [EVEN, HARD, EASY, ALMOST_NONE], ids=["any", "hard", "easy", "almost none"])
def test_the_interval_of_pass_at_k_holds_it(boards, k, spread):
    """Claim: the interval of pass@k over boards holds it in at least 93 % of cases; of five boards or one, in 86 %."""
    rng = np.random.default_rng(boards)
    counts = rng.binomial(ANSWERS, rng.beta(*spread, (CASES, boards)))
    found = [pass_at_k(right, ANSWERS, k)[1] for right in counts.tolist()]
    low, high = zip(*found, strict=True)
    assert_coverage(low, high, np.full(CASES, chance_within(k, *spread)), 0.93 if boards >= 20 else 0.86)


@pytest.mark.parametrize("right", [0, ANSWERS])
def test_of_boards_that_are_all_alike_pass_at_k_is_not_certain(right):
    """All fail or all succeed: a few boards do not show that all do; the interval is that of so many trials."""
    rate, (low, high) = pass_at_k([right] * 5, ANSWERS, 1)
    assert rate == right / ANSWERS
    assert (low, high) == pytest.approx(wilson(5 * (right > 0), 5))


@pytest.mark.parametrize("boards", [(20, 20, 20), (400, 10), (300, 5, 5, 5)], ids=str)
@pytest.mark.parametrize("spread", [EVEN, HARD, EASY], ids=["any", "almost all fail", "almost all succeed"])
def test_the_interval_of_a_mean_over_sizes_holds_it_however_few_boards_a_size_has(boards, spread):
    """Claim: the interval of the unweighted mean of several rates holds it in at least 93 %."""
    rng = np.random.default_rng(len(boards))
    rates = rng.beta(*spread, (CASES, len(boards)))
    counts = rng.binomial(boards, rates).tolist()
    found = [mean_of_rates(list(zip(one, boards, strict=True)))[1] for one in counts]
    low, high = zip(*found, strict=True)
    assert_coverage(low, high, rates.mean(axis=1), 0.93)


def test_the_mean_of_one_rate_has_the_interval_of_that_rate():
    assert mean_of_rates([(3, 20)]) == (pytest.approx(0.15), pytest.approx(wilson(3, 20)))
