"""The p-value by which a stage is rolled back: of policies that are as good as before, it is below p in a share p.

Claim: of 1 000 stages whose policy is neither better nor worse, whatever its valid rate and however many answers
changed, at most a share p has a p-value of p or less, so that at the level 0.05 at most one stage in twenty is rolled
back for nothing (a run of many stages may be, once); and a policy that lost a tenth of 300 problems nearly always is.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from lakewright.engineer.rollback import RollbackSettings, compare_answers

CASES = 1000


def p_values(problems: int, before: float, after: float, seed: int = 0) -> np.ndarray:
    """Of so many stages, with independent answers of these valid rates before and after."""
    rng = np.random.default_rng(seed)
    pairs = zip(rng.random((CASES, problems)) < before, rng.random((CASES, problems)) < after, strict=True)
    return np.array([compare_answers(old.tolist(), new.tolist()).p_value for old, new in pairs])


@pytest.mark.parametrize(("problems", "rate"), [(1, 0.5), (40, 0.02), (40, 0.5), (300, 0.1), (300, 0.99)])
def test_a_policy_as_good_as_before_is_seldom_rolled_back(problems, rate):
    found = p_values(problems, rate, rate)
    for level in (0.01, RollbackSettings().level, 0.1, 0.5):
        assert (found <= level).mean() <= level + 3 * (level * (1 - level) / CASES) ** 0.5


def test_a_policy_that_lost_a_tenth_is_rolled_back():
    level = RollbackSettings().level
    assert (p_values(300, 0.7, 0.6)[:200] < level).mean() > 0.75
    assert (p_values(300, 0.15, 0.05)[:200] < level).mean() > 0.95


@pytest.mark.parametrize("answers", [[], [True] * 40, [False] * 40], ids=["no problems", "all succeed", "all fail"])
def test_where_no_answer_changed_nothing_is_rolled_back(answers):
    assert compare_answers(answers, answers).p_value == 1.0


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_chance_is_that_of_the_binomial_distribution(gained, lost):
    found = compare_answers([False] * gained + [True] * lost, [True] * gained + [False] * lost)
    expected = binomtest(lost, gained + lost, 0.5, alternative="greater").pvalue if gained + lost else 1.0
    assert found.p_value == pytest.approx(expected, rel=1e-10)
