"""The trial and the rollback as arithmetic: shares of cells, signals without bias, an exact test."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig, hole_ratio_of
from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty import Mix
from lakewright.engineer.rollback import compare_answers
from lakewright.engineer.trial import FEWEST, CellTrial, Signal, TrialSettings, problems_to_try, sum_up_trial
from lakewright.experiments.environments.lake import design_of
from tests.support.refusals import refused
from tests.support.samples.evidence import LAKE

DESIGN = design_of(EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 5: SizeConfig(0.5, 0.25, 0.5)}))
MIX = LAKE.mix(DESIGN)
CELL = Cell(3, (0.2, False), (2,))
shares = st.floats(0, 1, allow_nan=False)


@st.composite
def mixes(draw) -> Mix:
    part = draw(shares)
    rows = [SizeConfig(data, draw(st.floats(0, 0.5)), draw(shares)) for data in (part, 1 - part)]
    return LAKE.mix(design_of(EnvConfig({3: rows[0], 5: rows[1]})))


def signal_of(plans: int, *valid: int) -> Signal:
    return CellTrial(CELL, plans, list(valid)).signal()


@given(mixes())
def test_the_shares_of_the_cells_sum_to_one_and_no_cell_is_empty(mix):
    assert math.fsum(mix.values()) == pytest.approx(1)
    assert all(share > 0 for share in mix.values())


@given(mixes(), mixes())
def test_each_design_gets_the_boards_it_asks_for_and_shared_cells_are_rolled_out_once(one, other):
    settings = TrialSettings(share=0, boards=50)
    counts = problems_to_try([one, other], settings)
    assert counts.keys() == one.keys() | other.keys()
    for mix in (one, other):
        for cell, share in mix.items():
            assert counts[cell] >= max(FEWEST, 50 * share), cell
    assert sum(counts.values()) <= 2 * 50 + FEWEST * len(counts) + len(counts)


def test_the_variance_has_no_bias_however_few_plans_are_sampled():
    for p, plans in itertools.product((0.1, 0.5, 0.9), (2, 3, 8)):
        chance = [math.comb(plans, valid) * p**valid * (1 - p) ** (plans - valid) for valid in range(plans + 1)]
        expected = sum(c * signal_of(plans, valid).variance for valid, c in enumerate(chance))
        assert expected == pytest.approx(p * (1 - p)), f"p {p}, {plans} plans"


def test_a_group_is_informative_where_some_plans_are_valid_and_some_are_not():
    assert signal_of(4, 0, 4, 1, 3) == Signal(0.5, 0.5, 0.125)


def test_a_design_has_the_mean_signal_of_its_cells_by_their_shares():
    signals = {cell: Signal(int(cell.stratum) / 10, 0.0, float(cell.values[1])) for cell in MIX}
    found = sum_up_trial(DESIGN, MIX, signals)
    assert found.signal.variance == pytest.approx(0.5)
    assert found.signal.valid == pytest.approx(0.5 * 0.3 + 0.5 * 0.5)
    assert {size: part.valid for size, part in found.strata.items()} == pytest.approx({3: 0.3, 5: 0.5})


def test_by_regret_boards_are_worth_the_share_of_their_plans_that_fail():
    part = CellTrial(CELL, 4, [0, 1, 4])
    assert part.values("regret") == [1.0, 0.75, 0.0]
    assert part.values("learnability") == part.variances()
    signals = dict.fromkeys(MIX, Signal(0.25, 0.0, 0.1))
    assert sum_up_trial(DESIGN, MIX, signals, objective="regret").score == pytest.approx(0.75)
    assert sum_up_trial(DESIGN, MIX, signals).score == pytest.approx(0.1)


def test_boards_with_equal_holes_are_of_one_cell_whatever_their_ratio():
    one, other = (LAKE.mix(design_of(EnvConfig.single(3, 2, ratio, 0.5))) for ratio in (0.2, 0.21))
    assert one.keys() == other.keys() == {Cell(3, (hole_ratio_of(3, 2, 1), wait), (2,)) for wait in (True, False)}


def test_one_plan_a_board_shows_no_variance():
    with refused("samples", 1, 2, kind=ValueError):
        TrialSettings(samples=1)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (3, 0), (0, 4), (5, 5), (2, 9), (9, 2), (0, 5)])
def test_the_chance_of_so_many_lost_boards_is_that_of_fair_coins(gained, lost):
    before = [False] * gained + [True] * lost + [True, False] * 3
    after = [True] * gained + [False] * lost + [True, False] * 3
    changed = gained + lost
    p_value = sum(math.comb(changed, k) for k in range(lost, changed + 1)) / 2**changed
    found = compare_answers(before, after)
    assert (found.gained, found.lost) == (gained, lost)
    assert found.p_value == pytest.approx(p_value)


def test_policies_are_compared_on_the_same_boards_only():
    with pytest.raises(ValueError, match="shorter"):
        compare_answers([True, True], [True])
