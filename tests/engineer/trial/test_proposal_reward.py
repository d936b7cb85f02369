"""What proposals earn: their lead, less what was held back and what siblings proposed too; refused ones -1."""

import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.trial import ProposalReward, measure_return, reward_proposals
from lakewright.experiments.environments.lake import design_of
from tests.support.samples.evidence import SPACE

SETTINGS = ProposalReward(scale=10.0, held_back=0.1, identical=0.5)


def verdict(hole_ratio: float, status: str = "accepted") -> GuardVerdict:
    return GuardVerdict(status, [], design_of(EnvConfig.single(3, 2, hole_ratio, 0.5)))


def earned(*verdicts: GuardVerdict):
    return reward_proposals(list(verdicts), lambda design: design.strata[3]["hole_ratio"] - 0.2, SETTINGS, SPACE)


def test_a_proposal_earns_its_lead_and_a_projected_one_less():
    one, held_back, refused = earned(verdict(0.3), verdict(0.4, "projected"), verdict(0.2, "refused"))
    assert one.reward == pytest.approx(1.0)
    assert held_back.reward == pytest.approx(2.0 - 0.1)
    assert refused.reward == -1.0
    assert one.siblings == 0
    assert sum(part.advantage for part in (one, held_back, refused)) == pytest.approx(0, abs=1e-9)
    assert held_back.advantage > one.advantage > refused.advantage


def test_who_repeats_the_siblings_earns_less():
    repeated, again, other = earned(verdict(0.3), verdict(0.31), verdict(0.4))
    assert repeated.siblings == again.siblings == 0.5
    assert repeated.reward == pytest.approx(1.0 - 0.25)
    assert other.reward == pytest.approx(2.0)


def test_a_group_that_earns_alike_teaches_nothing():
    assert {part.advantage for part in earned(verdict(0.3), verdict(0.3))} == {0.0}


def test_a_return_is_what_some_stages_gained_beyond_the_trend_of_the_run():
    rates = [0.5, 0.6, 0.6, 0.62, 0.74]
    assert measure_return(rates, 2) == pytest.approx((0.74 - 0.6) - 2 * 0.06)
    assert measure_return(rates, 3) == pytest.approx((0.74 - 0.6) - 3 * 0.06)
    assert measure_return(rates, 4) is None, "the stages are the whole run, so nothing can be compared"
    assert measure_return([], 1) is None
