"""The trial and the rollback as arithmetic: shares of strata, signals without bias, an exact test."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.generator import Stratum
from lakewright.engineer.rollback import compared
from lakewright.engineer.trial import FEWEST, Signal, StratumTrial, TrialSettings, boards_to_try, strata_of, tried
from tests.support.models.tiny_policy import ENV

shares = st.floats(0, 1, allow_nan=False)


@st.composite
def configs(draw) -> EnvConfig:
    part = draw(shares)
    cells = [SizeConfig(data, draw(st.floats(0, 0.5)), draw(shares)) for data in (part, 1 - part)]
    return EnvConfig({3: cells[0], 5: cells[1]})


def signal_of(plans: int, *valid: int) -> Signal:
    return StratumTrial(Stratum(3, 2, 1, False), plans, list(valid)).signal()


@given(configs())
def test_the_shares_of_the_strata_sum_to_one_and_no_stratum_is_empty(config):
    found = strata_of(config)
    assert math.fsum(found.values()) == pytest.approx(1)
    assert all(share > 0 for share in found.values())


@given(configs(), configs())
def test_each_config_gets_the_boards_it_asks_for_and_shared_strata_are_rolled_out_once(one, other):
    settings = TrialSettings(boards=50)
    counts = boards_to_try([one, other], settings)
    assert counts.keys() == strata_of(one).keys() | strata_of(other).keys()
    for config in (one, other):
        for stratum, share in strata_of(config).items():
            assert counts[stratum] >= max(FEWEST, 50 * share), stratum
    assert sum(counts.values()) <= 2 * 50 + FEWEST * len(counts) + len(counts)


def test_the_variance_has_no_bias_however_few_plans_are_sampled():
    for p, plans in itertools.product((0.1, 0.5, 0.9), (2, 3, 8)):
        chance = [math.comb(plans, valid) * p**valid * (1 - p) ** (plans - valid) for valid in range(plans + 1)]
        expected = sum(c * signal_of(plans, valid).variance for valid, c in enumerate(chance))
        assert expected == pytest.approx(p * (1 - p)), f"p {p}, {plans} plans"


def test_a_group_is_informative_where_some_plans_are_valid_and_some_are_not():
    assert signal_of(4, 0, 4, 1, 3) == Signal(0.5, 0.5, 0.125)


def test_a_config_has_the_mean_signal_of_its_strata_by_their_shares():
    signals = {stratum: Signal(stratum.size / 10, 0.0, float(stratum.wait)) for stratum in strata_of(ENV)}
    found = tried(ENV, signals)
    assert found.signal.variance == pytest.approx(0.5)
    assert found.signal.valid == pytest.approx(0.5 * 0.3 + 0.5 * 0.5)
    assert {size: part.valid for size, part in found.sizes.items()} == pytest.approx({3: 0.3, 5: 0.5})


def test_by_regret_boards_are_worth_the_share_of_their_plans_that_fail():
    part = StratumTrial(Stratum(3, 2, 1, False), 4, [0, 1, 4])
    assert part.values("regret") == [1.0, 0.75, 0.0]
    assert part.values("learnability") == part.variances()
    signals = {stratum: Signal(0.25, 0.0, 0.1) for stratum in strata_of(ENV)}
    assert tried(ENV, signals, objective="regret").score == pytest.approx(0.75)
    assert tried(ENV, signals).score == pytest.approx(0.1)


def test_boards_with_equal_holes_are_one_stratum_whatever_their_ratio():
    one, other = (EnvConfig.single(3, 2, ratio, 0.5) for ratio in (0.2, 0.21))
    assert strata_of(one).keys() == strata_of(other).keys() == {Stratum(3, 2, 1, wait) for wait in (True, False)}


def test_one_plan_a_board_shows_no_variance():
    with pytest.raises(ValueError, match="samples is 1; choose at least 2"):
        TrialSettings(samples=1)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (3, 0), (0, 4), (5, 5), (2, 9), (9, 2), (0, 5)])
def test_the_chance_of_so_many_lost_boards_is_that_of_fair_coins(gained, lost):
    before = [False] * gained + [True] * lost + [True, False] * 3
    after = [True] * gained + [False] * lost + [True, False] * 3
    changed = gained + lost
    p_value = sum(math.comb(changed, k) for k in range(lost, changed + 1)) / 2**changed
    found = compared(before, after)
    assert (found.gained, found.lost) == (gained, lost)
    assert found.p_value == pytest.approx(p_value)


def test_policies_are_compared_on_the_same_boards_only():
    with pytest.raises(ValueError, match="shorter"):
        compared([True, True], [True])
