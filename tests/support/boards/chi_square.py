"""Chi-square tests of what was drawn."""

import numpy as np


def assert_even(counts: np.ndarray) -> None:
    """Chi-square against equal chances."""
    assert_as_likely(counts, np.ones(len(counts)))


def assert_as_likely(counts: np.ndarray, weights: np.ndarray) -> None:
    """Chi-square against chances in proportion to `weights`: within six standard deviations of its mean."""
    expected = counts.sum() * weights / weights.sum()
    assert expected.min() >= 5, "too few draws of the rarest"
    found, freedom = ((counts - expected) ** 2 / expected).sum(), len(counts) - 1
    assert abs(found - freedom) < 6 * np.sqrt(2 * freedom), f"chi-square {found:.0f} at {freedom} degrees of freedom"
