"""The choice between tried configs: shortlists, halving, and how sure it is."""

import numpy as np
import pytest
from scipy.stats import norm

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty import DifficultySettings, Mix, Observation, Worth, estimate_worth, fit_regression
from lakewright.engineer.trial import MISFIT, Lead, choose_rival, estimate_lead, problems_by_round, shortlist_designs
from lakewright.experiments.environments.lake import design_of
from tests.support.samples.evidence import LAKE, SPACE


def mix(small: float, large: float) -> Mix:
    """The cells of a config with these shares of 3x3 and 6x6."""
    return LAKE.mix(design_of(EnvConfig({3: SizeConfig(small, 0.2, 0.5), 6: SizeConfig(large, 0.2, 0.5)})))


SAMPLES = 4
EVEN, SMALL, LARGE = mix(0.5, 0.5), mix(0.9, 0.1), mix(0.1, 0.9)


def rolled(small: float, large: float, boards: int = 50, spread: float = 0.1) -> dict:
    """Estimates of p (1 - p) on the boards of each cell; those of a size have one mean."""
    rng = np.random.default_rng(0)
    noise = {cell: rng.normal(0, spread, boards) for cell in EVEN}
    means = {3: small, 6: large}
    return {cell: (means[cell.stratum] + part - part.mean()).tolist() for cell, part in noise.items()}


def model(p_small: float, p_large: float):
    cells = [
        (Cell(size, (0.2, forced), (2,)), p) for size, p in ((3, p_small), (6, p_large)) for forced in (False, True)
    ]
    found = [Observation(cell, 100, 100 * p, 100 * p * (1 - p)) for cell, p in cells]
    return fit_regression(found, DifficultySettings(), SPACE)


def test_the_shortlist_is_what_the_model_expects_most_of():
    def shortlist(known, mixes, count):
        found = shortlist_designs(known, EVEN, mixes, count, SPACE)
        assert [worth for _, worth in found] == [estimate_worth(known, mixes[place], SPACE, EVEN) for place, _ in found]
        return [place for place, _ in found]

    assert shortlist(model(0.99, 0.5), [SMALL, EVEN, LARGE], 2) == [2, 1]
    assert shortlist(model(0.5, 0.01), [SMALL, EVEN, LARGE], 1) == [0]
    assert shortlist(fit_regression([], DifficultySettings(), SPACE), [SMALL, LARGE], 1) == [0]


@pytest.mark.parametrize(("rivals", "expected"), [(1, [80]), (2, [40, 80]), (3, [27, 54, 80]), (4, [27, 54, 80])])
def test_boards_grow_round_by_round_while_the_rivals_halve(rivals, expected):
    assert problems_by_round(80, rivals) == expected


def test_a_lead_is_the_difference_on_shared_cells():
    lead = estimate_lead(LARGE, EVEN, rolled(0.1, 0.2), SAMPLES, None)
    assert lead.measured == pytest.approx(0.4 * 0.2 - 0.4 * 0.1)
    assert lead.error == pytest.approx((4 * 0.2**2 * 0.1**2 / 50) ** 0.5, rel=0.3)
    assert lead.better > 0.95
    assert estimate_lead(SMALL, EVEN, rolled(0.1, 0.2), SAMPLES, None).better == pytest.approx(
        1 - lead.better, abs=1e-6
    )


def test_the_same_config_leads_by_nothing():
    lead = estimate_lead(EVEN, EVEN, rolled(0.1, 0.2), SAMPLES, None)
    assert (lead.measured, lead.error, lead.better) == (0.0, 0.0, 0.5)


def test_a_tie_is_settled_by_the_model_and_a_clear_measurement_is_not():
    tie = rolled(0.15, 0.15)
    assert estimate_lead(LARGE, EVEN, tie, SAMPLES, Worth(0.02, 0.0)).better > 0.8
    assert estimate_lead(LARGE, EVEN, tie, SAMPLES, Worth(-0.02, 0.0)).better < 0.2
    assert estimate_lead(LARGE, EVEN, rolled(0.05, 0.2, 2000), SAMPLES, Worth(-0.02, MISFIT)).better > 0.95


def test_the_probability_of_being_better_is_calibrated():
    rng = np.random.default_rng(1)
    sure, right = [], []
    for _ in range(400):
        small, large = rng.normal(0.12, 0.02, 2)
        rolled_out = {cell: rng.normal({3: small, 6: large}[cell.stratum], 0.1, 20).tolist() for cell in EVEN}
        sure.append(estimate_lead(LARGE, EVEN, rolled_out, SAMPLES, None).better)
        right.append(large > small)
    high = np.array(sure) > 0.8
    assert np.mean(np.array(right)[high]) == pytest.approx(np.mean(np.array(sure)[high]), abs=0.08)
    assert np.mean((np.array(sure) - right) ** 2) < 0.25


def posterior(mean: float, deviation: float = 0.01) -> Lead:
    return Lead(mean, deviation, 0.0, mean, deviation, float(norm.cdf(mean / deviation)))


def test_on_a_tie_the_current_config_stays():
    assert choose_rival([posterior(0.0)], 0, 0) is None
    assert choose_rival([posterior(0.0), posterior(1e-5)], 1, 0) is None, "stated as 0.50"
    assert choose_rival([posterior(-0.01), posterior(-0.02)], 0, 1) is None


def test_a_change_that_was_stretched_is_trained_on_only_where_it_leads_the_proposal():
    made, alike, better = posterior(0.02), posterior(0.02 + 1e-5), posterior(0.03)
    assert choose_rival([made, alike], 1, 0) == 0
    assert choose_rival([made, better], 1, 0) == 1
    assert choose_rival([posterior(0.0), better], 1, 0) == 1, "the proposal itself is no better than the current config"
    assert choose_rival([alike, better], 1) == 1, "the proposal was not tried"
