"""What a study may conclude: by hand-made numbers."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from lakewright.experiments.studies.inference import correct_by_holm, interquartile_mean, run_paired_tests
from lakewright.experiments.studies.learning_curves import CurvePoint, average_curve


def test_the_interquartile_mean_ignores_the_outer_quarters():
    found = interquartile_mean([0.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 1000.0])
    assert found.mean == 15.0
    assert 0 <= found.low < 15 < found.high <= 1000
    assert interquartile_mean([3.0]).low == 3.0


def test_the_correction_is_holms():
    assert correct_by_holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_by_holm([0.5, 0.9]) == [1.0, 1.0]
    assert correct_by_holm([]) == []


def test_arms_are_compared_on_the_seeds_that_they_share():
    rng = np.random.default_rng(0)
    fixed = {seed: float(rng.normal(50, 2)) for seed in range(10)}
    better = {seed: value + 2 + float(rng.normal(0, 0.5)) for seed, value in fixed.items()}
    arms = {"fixed": fixed, "better": better, "alike": dict(fixed), "one": {0: 1.0}}
    family = [("better", "fixed"), ("alike", "fixed"), ("one", "fixed"), ("absent", "fixed")]
    found = run_paired_tests(arms, family)
    assert [test.arm for test in found] == ["better", "alike"]
    gain, nothing = found
    differences = [better[seed] - fixed[seed] for seed in fixed]
    assert gain.difference.mean == pytest.approx(np.mean(differences))
    assert gain.p_value == pytest.approx(ttest_1samp(differences, 0).pvalue)
    assert gain.corrected == pytest.approx(2 * gain.p_value)
    assert gain.difference.low > 1
    assert (nothing.p_value, nothing.difference.mean, nothing.seeds) == (1.0, 0.0, 10)


@pytest.mark.parametrize(
    ("points", "mean"),
    [
        ([(0, 50), (100, 70)], 60),
        ([(0, 50), (50, 70), (100, 70)], 65),
        ([(0, 50), (50, 70)], 65),  # ended before its budget
        ([(0, 50), (200, 90)], 60),  # its last step went beyond
    ],
)
def test_along_is_the_area_under_a_curve_within_the_budget(points, mean):
    assert average_curve([CurvePoint(tokens, valid) for tokens, valid in points], 100) == pytest.approx(mean)
