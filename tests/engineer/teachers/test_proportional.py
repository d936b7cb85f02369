"""The proportional rule: data and waits follow what boards are worth; holes follow the threshold rule."""

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import Outcomes
from lakewright.engineer.delta import ConfigDelta, edited, normalised
from lakewright.engineer.teachers import ProportionalTeacher, RulesTeacher, make_teacher
from tests.support.samples.evidence import everything

SIZES = (4, 5, 8)
CONFIG = EnvConfig(dict.fromkeys(SIZES, SizeConfig(1 / 3, 0.2, 0.5)))
STEP = 0.05

rates = st.tuples(*[st.integers(0, 99)] * len(SIZES))


def outcomes(valid: int) -> Outcomes:
    return Outcomes(100, valid, valid, valid, {"hole": 100 - valid}, 0, 0)


def proposed(seen: dict[int, int], config: EnvConfig = CONFIG, teacher: str = "proportional", **options) -> ConfigDelta:
    """seen: of each size, how many of a hundred plans are valid."""
    evidence = everything(config, {size: outcomes(valid) for size, valid in seen.items()})
    delta = make_teacher(teacher, options=options).propose(evidence, config, jax.random.key(0)).delta
    assert delta is not None
    return delta


def shares(config: EnvConfig) -> dict[int, float]:
    return {size: cell.data_ratio for size, cell in config.sizes.items()}


def test_data_go_where_boards_are_worth_most():
    edits = proposed({4: 90, 5: 60, 8: 10}, objective="regret").edits
    assert [edits[size].data_ratio for size in SIZES] == pytest.approx([-0.1, -0.05, 0.1])
    edits = proposed({4: 98, 5: 50, 8: 2}).edits
    assert edits[5].data_ratio > 0 > max(edits[4].data_ratio, edits[8].data_ratio), "p (1 - p) is most at one half"


def test_a_larger_power_moves_more_data_to_the_best():
    seen = {4: 68, 5: 66, 8: 64}
    assert not any(edit.data_ratio for edit in proposed(seen, objective="regret").edits.values())
    assert proposed(seen, objective="regret", power=10.0).edits[8].data_ratio == pytest.approx(0.1)


@given(rates)
def test_applied_again_and_again_it_settles_where_data_are_in_proportion_to_regret(valid):
    config, seen = CONFIG, dict(zip(SIZES, valid, strict=True))
    for _ in range(20):
        config = config.replace(normalised(edited(config, proposed(seen, config, objective="regret"))))
    total = sum(100 - rate for rate in valid)
    for size, share in shares(config).items():
        assert share == pytest.approx((100 - seen[size]) / total, abs=STEP), (valid, shares(config))


@given(rates, st.sampled_from(["regret", "learnability"]))
def test_holes_move_as_the_threshold_rule_moves_them(valid, objective):
    seen = dict(zip(SIZES, valid, strict=True))
    evidence = everything(CONFIG, {size: outcomes(rate) for size, rate in seen.items()})
    known = RulesTeacher.seeking(objective).delta(evidence, CONFIG).edits
    for size, edit in ProportionalTeacher(objective).delta(evidence, CONFIG).edits.items():
        assert (edit.hole_ratio, edit.reason) == (known[size].hole_ratio, known[size].reason), (valid, size)


def half_forced(free: int, forced: int) -> Outcomes:
    """A hundred boards of each kind, and how many plans of them are valid."""
    valid = free + forced
    return Outcomes(200, valid, valid, valid, {"hole": 200 - valid}, 100, forced)


@given(st.integers(0, 99), st.integers(0, 99))
def test_applied_again_and_again_waits_settle_where_both_kinds_of_boards_have_data_in_proportion(free, forced):
    config, evidence = CONFIG, {size: half_forced(free, forced) for size in SIZES}
    for _ in range(10):
        delta = ProportionalTeacher("regret").delta(everything(config, evidence), config)
        config = config.replace(normalised(edited(config, delta)))
    target = (100 - forced) / (200 - free - forced)
    for size, cell in config.sizes.items():
        assert cell.wait_ratio == pytest.approx(target, abs=0.051), (free, forced, size)


def test_waits_go_to_the_size_where_they_fail():
    seen = {4: half_forced(90, 10), 5: half_forced(10, 90), 8: outcomes(50)}
    edits = ProportionalTeacher("regret").delta(everything(CONFIG, seen), CONFIG).edits
    assert edits[4].wait_ratio == pytest.approx(0.2), "boards that force a wait fail there"
    assert edits[5].wait_ratio == pytest.approx(-0.2)
    assert edits[8].wait_ratio == 0, "nothing is known of boards that force a wait"


@given(rates)
def test_sizes_that_exchange_their_figures_exchange_their_edits(valid):
    here = proposed(dict(zip(SIZES, valid, strict=True))).edits
    there = proposed(dict(zip((5, 8, 4), valid, strict=True))).edits
    for size, other in zip(SIZES, (5, 8, 4), strict=True):
        assert here.get(size) == there.get(other), valid


def test_what_has_no_evidence_stays_and_keeps_its_data():
    edits = proposed({4: 90, 5: 10}, objective="regret").edits
    assert edits.keys() == {4, 5}
    assert edits[4].data_ratio + edits[5].data_ratio == pytest.approx(0.0)
    assert proposed({}) == ConfigDelta({})


def test_boards_that_are_worth_nothing_anywhere_share_data_equally():
    config = EnvConfig({4: SizeConfig(0.6, 0.5, 1.0), 5: SizeConfig(0.4, 0.5, 1.0)})
    edits = proposed({4: 100, 5: 100}, config).edits
    assert [edits[size].data_ratio for size in (4, 5)] == pytest.approx([-0.1, 0.1])
