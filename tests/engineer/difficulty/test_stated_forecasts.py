"""What the difficulty model expects of a cell, and how unsure it says it is, against policies whose chances are known.

The default, `abilities`, is calibrated as soon as something is known of each kind of problems. Claims, after 24 groups
or more on twelve cells, of answers that are alike within a group or not: an interval of 1.96 deviations holds P(valid)
in 92 to 99 % of cells; the error, root mean square, is the deviation within a sixth; and of the cells with the same
expectation, in tenths, as many succeed, within 0.08. The policies are not of its prior.

The regression of version 0.2 is cautious. Claims, of policies from its prior, 1 000 in the deep tests, after no group,
one group or many: an interval of 1.96 deviations holds P(valid) in at least 95 % of cells; the error,
root mean square, is no larger than the deviation; and a forecast errs toward one half: cells that are expected to fail
fail at least as often as expected, and those that are expected to succeed succeed at least as often. So it is
cautious, by as much as docs/lab/stated-probabilities.md says, and never sure of more than it knows. It is not
calibrated in the strict sense: it counts a group as one observation, however many answers it has, and takes the mode of
a skewed posterior for its mean.
"""

import numpy as np
import pytest

from lakewright.engineer.difficulty import DifficultySettings
from tests.support.samples.simulated_policies import CELLS, SPACE, draw_mix, draw_policy, fit_policy

FEW, MANY = 100, 1000  # policies
Z = 1.959964


def forecast(
    groups: float, ease: float, scale: float, apart: float, cases: int = MANY, model: str = "regression"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The truth, the expectation and the deviation of every cell, float [cases, CELLS] each; a case is a policy."""
    rng, settings = np.random.default_rng(0), DifficultySettings(model=model)
    rows = []
    for _ in range(cases):
        policy = draw_policy(rng, ease, scale, apart)
        drawn = {cell: groups * share for cell, share in draw_mix(rng).items()}
        found = fit_policy(rng, policy, drawn, settings).predict(CELLS, SPACE)
        rows.append((policy.success(), found.mean, found.deviation))
    truth, mean, deviation = (np.array(part) for part in zip(*rows, strict=True))
    return truth, mean, deviation


def assert_calibrated(truth: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> None:
    """Asserts the claims of the default, beyond the chance of so many policies."""
    held = (np.abs(truth - mean) <= Z * deviation).mean(axis=1)
    chance = 3 * held.std() / len(held) ** 0.5
    assert 0.92 - chance <= held.mean() <= 0.99 + chance
    error = np.sqrt(((truth - mean) ** 2).mean() / (deviation**2).mean())
    assert 5 / 6 - 2 * chance <= error <= 7 / 6 + 2 * chance
    tenth = np.minimum((mean * 10).astype(int), 9)
    for place in range(10):
        mine = tenth == place
        policies = mine.any(axis=1).sum()
        if policies >= 30:
            off = truth[mine].mean() - mean[mine].mean()
            assert abs(off) <= 0.08 + 3 * truth[mine].std() / policies**0.5, f"tenth {place}: off by {off:.3f}"


@pytest.mark.parametrize(
    ("groups", "scale", "apart", "cases"),
    [
        (24, 1.0, 1.0, 40),
        *(
            pytest.param(groups, scale, apart, 300, marks=pytest.mark.deep)
            for groups in (24, 96, 400)
            for scale, apart in ((1.0, 0.0), (1.0, 1.0), (0.5, 2.0))
        ),
    ],
)
def test_the_default_model_is_as_sure_as_it_may_be(groups, scale, apart, cases):
    assert_calibrated(*forecast(groups, 0.0, scale, apart, cases, "abilities"))


def assert_cautious(truth: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> None:
    """Asserts the claims; a case is a policy, so that chance is that of so many of them."""
    held = (np.abs(truth - mean) <= Z * deviation).mean(axis=1)
    assert held.mean() >= 0.95 - 3 * held.std() / len(held) ** 0.5
    assert np.sqrt(((truth - mean) ** 2).mean()) <= 1.03 * np.sqrt((deviation**2).mean())
    for low, high, side in (
        (0.0, 0.1, -1),
        (0.1, 0.3, -1),
        (0.3, 0.45, -1),
        (0.55, 0.7, 1),
        (0.7, 0.9, 1),
        (0.9, 1, 1),
    ):
        mine = (mean >= low) & (mean <= high)
        policies = mine.any(axis=1).sum()
        if policies >= 50:
            beyond = side * (truth[mine].mean() - mean[mine].mean())
            assert beyond >= -3 * truth[mine].std() / policies**0.5, f"expected {low} to {high}: off by {beyond:.3f}"


@pytest.mark.parametrize(("groups", "apart"), [(1, 1.0), (24, 0.0)], ids=["hardly a group", "few groups"])
def test_the_regression_is_never_surer_than_it_may_be(groups, apart):
    assert_cautious(*forecast(groups, ease=0.0, scale=1.0, apart=apart, cases=FEW))


@pytest.mark.parametrize(
    ("ease", "cases"),
    [(-7.0, FEW), *(pytest.param(ease, MANY, marks=pytest.mark.deep) for ease in (-7.0, 7.0))],
)
def test_the_regression_is_not_surer_than_it_may_be_where_all_answers_are_alike(ease, cases):
    truth, mean, deviation = forecast(48, ease, scale=0.3, apart=1.0, cases=cases)
    assert (np.abs(truth - mean) <= Z * deviation).mean() >= 0.95
    assert (np.abs(mean - (ease > 0)) < 0.2).mean() > 0.95


def test_without_groups_every_chance_is_as_likely_as_its_opposite():
    truth, mean, deviation = forecast(0, ease=0.0, scale=1.0, apart=0.0)
    assert mean == pytest.approx(0.5)
    assert np.sqrt(((truth - mean) ** 2).mean()) == pytest.approx(deviation.mean(), rel=0.03)


@pytest.mark.deep
@pytest.mark.parametrize("groups", [1, 8, 24, 96, 400])
@pytest.mark.parametrize("apart", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_the_regression_is_never_surer_than_it_may_be_whatever_the_policy(groups, apart, scale):
    assert_cautious(*forecast(groups, 0.0, scale, apart))
