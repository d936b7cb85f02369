"""The p-values and intervals that a study states, against simulated studies of which the truth is known.

Claims, of 1 000 studies each. Tests: arms that do not differ have a p-value of at most p in a share p, exactly where
differences between seeds are normal; and of a family of nine such pairs, Holm's correction calls any different in at
most 5 %. Student's t over seeds, in the viewer's curves, holds the mean in 95 %. The bootstrap by seed does not: few
seeds are resampled too alike. It holds the truth as often as COVERAGE and docs/lab/stated-probabilities.md say;
with one seed, or seeds that are all equal, it is a point.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from lakewright.experiments.studies.inference import interquartile_mean, run_paired_tests
from lakewright.experiments.viewer.pages.compare_page import make_seed_point
from tests.support.deep import keep_quick
from tests.support.tools.calibration import SURE, assert_coverage

QUICK = 300  # resamples: fewer than usual change an end of an interval by little
CASES = 1000
STATED = Path(__file__).parents[3] / "docs" / "lab" / "stated-probabilities.md"
# In percent, by seeds: how often the 95 % interval of a mean difference, and of an interquartile mean, holds the truth.
COVERAGE = {2: (51, 51), 3: (73, 73), 5: (84, 90), 10: (89, 93), 20: (92, 94)}


def draw(seeds: int, arms: int = 1) -> np.ndarray:
    """Outcomes of seeds that are normal around 0, float [CASES, arms, seeds]."""
    return np.random.default_rng(seeds).standard_normal((CASES, arms, seeds))


def by_seed(values: np.ndarray) -> dict[int, float]:
    return dict(enumerate(values.tolist()))


@pytest.mark.parametrize("seeds", keep_quick([2, 3, 10], [3]))
def test_arms_that_do_not_differ_are_called_different_as_often_as_p_says(seeds):
    p_values = np.array(
        [
            run_paired_tests({"a": by_seed(one), "b": by_seed(other)}, [("a", "b")], resamples=1)[0].p_value
            for one, other in draw(seeds, arms=2)
        ]
    )
    for level in (0.01, 0.05, 0.5):
        assert (p_values <= level).mean() == pytest.approx(level, abs=SURE * (level * (1 - level) / CASES) ** 0.5)


def test_of_nine_pairs_that_do_not_differ_any_is_called_different_in_a_twentieth_at_most():
    names = [f"arm{place}" for place in range(10)]
    family = [(name, names[0]) for name in names[1:]]
    wrong = 0
    for study in draw(5, arms=10)[:200]:
        arms = {name: by_seed(values) for name, values in zip(names, study, strict=True)}
        wrong += any(found.corrected <= 0.05 for found in run_paired_tests(arms, family, resamples=1))
    assert wrong / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.parametrize("seeds", keep_quick([3, 10, 2, 5, 20], [3]))
def test_the_bootstrap_over_seeds_holds_the_truth_as_often_as_is_written(seeds):
    other = dict.fromkeys(range(seeds), 0.0)
    found = [
        run_paired_tests({"a": by_seed(one), "b": other}, [("a", "b")], QUICK)[0].difference
        for one in draw(seeds)[:, 0]
    ]
    expect = COVERAGE[seeds][0] / 100
    assert_coverage(
        [one.low for one in found], [one.high for one in found], np.zeros(CASES), expect - 0.01, expect + 0.01
    )


@pytest.mark.deep
@pytest.mark.parametrize("seeds", COVERAGE)
def test_the_interval_of_an_interquartile_mean_holds_the_truth_as_often_as_is_written(seeds):
    found = [interquartile_mean(one.tolist(), QUICK) for one in draw(seeds)[:, 0]]
    expect = COVERAGE[seeds][1] / 100
    assert_coverage(
        [one.low for one in found], [one.high for one in found], np.zeros(CASES), expect - 0.01, expect + 0.01
    )


def test_what_is_written_are_these_shares():
    lines = re.findall(r"^\| (\d+) seeds \| (\d+) % \| (\d+) % \|", STATED.read_text(), re.MULTILINE)
    assert {int(seeds): (int(mean), int(middle)) for seeds, mean, middle in lines} == COVERAGE


@pytest.mark.parametrize("seeds", [2, 3, 10])
def test_the_viewers_interval_over_seeds_holds_the_mean(seeds):
    points = [make_seed_point(0.0, (50 + one).tolist()) for one in draw(seeds)[:, 0]]
    assert_coverage([point.low for point in points], [point.high for point in points], np.full(CASES, 50.0), 0.95, 0.95)


def test_of_one_seed_and_of_equal_seeds_the_interval_is_a_point():
    for values in ([40.0], [40.0] * 5, [0.0] * 3, [100.0] * 3):
        found = interquartile_mean(values)
        assert found.low == found.mean == found.high == values[0]
    assert make_seed_point(0.0, [40.0]).low is None
