"""The probability with which a trial calls a design better than the current one comes true as often as it says.

Policies are drawn from the prior of the difficulty model, problems differ within a cell, groups of training fit the
model, and a trial compares two rivals with the current design; the lead of the winner is what a user reads. Claims, of
1 000 trials each: a stated probability is right within 0.05 beyond chance, and the interval of the lead, 1.96 of its
deviations to either side, holds the true lead in at least 93 %.
"""

from typing import NamedTuple

import numpy as np
import pytest

from lakewright.engineer.difficulty import DifficultySettings, Objective, estimate_worth
from lakewright.engineer.trial import CellTrial, Lead, TrialSettings, estimate_lead, problems_to_try
from tests.support.samples.simulated_policies import CELLS, SPACE, draw_mix, draw_policy, fit_policy
from tests.support.tools.calibration import assert_calibrated, assert_coverage

CASES = 1000
ANSWERS = 4
Z = 1.959964


class Situation(NamedTuple):
    """Trials of one kind. ease, scale: of the policies. far: how different designs are. groups: of the training."""

    objective: Objective = "learnability"
    ease: float = 0.0
    scale: float = 1.0
    far: float = 1.0
    boards: int = 200
    groups: int = 96
    prior: bool = True


def try_rivals(rng: np.random.Generator, kind: Situation) -> tuple[Lead, float]:
    """The lead that a trial states for the better of two rivals, and the true one."""
    policy = draw_policy(rng, kind.ease, kind.scale)
    current = draw_mix(rng)
    rivals = [draw_mix(rng, current, kind.far) for _ in range(2)]
    counts = problems_to_try([current, *rivals], TrialSettings(share=0, boards=kind.boards, samples=ANSWERS))
    values = {}
    for place, cell in enumerate(CELLS):
        valid = rng.binomial(ANSWERS, policy.draw_chances(rng, place, counts[cell])).tolist()
        values[cell] = CellTrial(cell, ANSWERS, valid).values(kind.objective)
    priors = [None, None]
    if kind.prior:
        groups = {cell: kind.groups * share for cell, share in current.items()}
        model = fit_policy(rng, policy, groups, DifficultySettings(objective=kind.objective))
        priors = [estimate_worth(model, rival, SPACE, current) for rival in rivals]
    leads = [estimate_lead(rival, current, values, ANSWERS, prior) for rival, prior in zip(rivals, priors, strict=True)]
    won = max(range(2), key=lambda place: leads[place].mean)
    away = np.array([rivals[won][cell] - current[cell] for cell in CELLS])
    return leads[won], float(away @ policy.worth(kind.objective))


def assert_true_leads(kind: Situation) -> None:
    rng = np.random.default_rng(0)
    leads, truths = zip(*(try_rivals(rng, kind) for _ in range(CASES)), strict=True)
    assert_calibrated([lead.better for lead in leads], [truth > 0 for truth in truths], 0.05)
    low, high = zip(*((lead.mean - Z * lead.deviation, lead.mean + Z * lead.deviation) for lead in leads), strict=True)
    assert_coverage(low, high, truths, 0.93)


@pytest.mark.parametrize(
    "kind",
    [
        Situation(far=0.1, boards=40, prior=False),
        pytest.param(Situation(ease=-7, scale=0.3, prior=False), marks=pytest.mark.deep),
        pytest.param(Situation("regret", ease=-7, scale=0.3, prior=False), marks=pytest.mark.deep),
        pytest.param(Situation("regret", ease=7, scale=0.3, prior=False), marks=pytest.mark.deep),
    ],
    ids=["near designs on few problems", "almost all fail", "almost all fail, by regret", "almost all succeed"],
)
def test_a_lead_by_rollouts_alone_is_as_probable_as_stated(kind):
    assert_true_leads(kind)


@pytest.mark.deep
@pytest.mark.parametrize("objective", ["learnability", "regret"])
@pytest.mark.parametrize(("ease", "scale"), [(0.0, 1.0), (-5.0, 0.5), (5.0, 0.5), (-7.0, 0.3), (7.0, 0.3)])
@pytest.mark.parametrize(("boards", "far", "groups"), [(40, 0.1, 96), (200, 0.1, 96), (200, 1.0, 0)])
def test_a_lead_with_the_prior_of_the_model_is_as_probable_as_stated(objective, ease, scale, boards, far, groups):
    assert_true_leads(Situation(objective, ease, scale, far, boards, groups))


@pytest.mark.parametrize("objective", ["learnability", "regret"])
@pytest.mark.parametrize("valid", [0, ANSWERS], ids=["all fail", "all succeed"])
def test_where_all_answers_are_alike_no_design_leads_and_the_tie_is_not_certain(objective, valid):
    """Of 50 problems without a valid answer, a hundredth may well have one: the interval of the lead is no point."""
    rng = np.random.default_rng(0)
    current, rival = draw_mix(rng), draw_mix(rng)
    values = {cell: CellTrial(cell, ANSWERS, [valid] * 50).values(objective) for cell in CELLS}
    lead = estimate_lead(rival, current, values, ANSWERS, None)
    assert lead.better == pytest.approx(0.5)
    assert lead.error > 0.001


def test_a_single_valid_answer_is_no_evidence_that_its_cell_leads():
    """With flat priors of both chances, one valid answer against none of as many leads with probability 3/4."""
    one, other = CELLS[:2]
    values = {
        cell: CellTrial(cell, ANSWERS, valid).values("learnability")
        for cell, valid in ((one, [0] * 50), (other, [1] + [0] * 49))
    }
    lead = estimate_lead({other: 1.0}, {one: 1.0}, values, ANSWERS, None)
    assert lead.better == pytest.approx(0.75, abs=0.05)
