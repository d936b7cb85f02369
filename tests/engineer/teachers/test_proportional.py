"""The proportional rule: data and waits follow what boards are worth; holes follow the threshold rule."""

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import BoardOutcomes
from lakewright.engineer.delta import edit_design
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.space import normalize_rows
from lakewright.engineer.teachers import ProportionalTeacher, RulesTeacher, make_teacher
from lakewright.experiments.environments.lake import design_of
from tests.support.samples.evidence import SPACE, everything

SIZES = (4, 5, 8)
DESIGN = design_of(EnvConfig(dict.fromkeys(SIZES, SizeConfig(1 / 3, 0.2, 0.5))))
STEP = 0.05

rates = st.tuples(*[st.integers(0, 99)] * len(SIZES))


def outcomes(valid: int) -> BoardOutcomes:
    return BoardOutcomes(100, valid, valid, valid, {"hole": 100 - valid}, 0, 0)


def proposed(seen: dict[int, int], design: Design = DESIGN, teacher: str = "proportional", **options) -> Delta:
    """seen: of each size, how many of a hundred plans are valid."""
    evidence = everything(design, {size: outcomes(valid) for size, valid in seen.items()})
    delta = make_teacher(teacher, options=options).propose(evidence, design, SPACE, jax.random.key(0)).delta
    assert delta is not None
    return delta


def shares(design: Design) -> dict[int, float]:
    return {int(size): row["data_ratio"] for size, row in design.strata.items()}


def changed(delta: Delta, name: str) -> dict[int, float]:
    """The change of a column of each size that is edited."""
    return {int(size): edit.changes[name] for size, edit in delta.edits.items()}


def follow(design: Design, delta: Delta) -> Design:
    """The design to which a delta leads."""
    return design.replace(normalize_rows(edit_design(design, delta, SPACE), SPACE))


def test_data_go_where_boards_are_worth_most():
    data = changed(proposed({4: 90, 5: 60, 8: 10}, objective="regret"), "data_ratio")
    assert [data[size] for size in SIZES] == pytest.approx([-0.1, -0.05, 0.1])
    data = changed(proposed({4: 98, 5: 50, 8: 2}), "data_ratio")
    assert data[5] > 0 > max(data[4], data[8]), "p (1 - p) is most at one half"


def test_a_larger_power_moves_more_data_to_the_best():
    seen = {4: 68, 5: 66, 8: 64}
    assert not any(changed(proposed(seen, objective="regret"), "data_ratio").values())
    assert changed(proposed(seen, objective="regret", power=10.0), "data_ratio")[8] == pytest.approx(0.1)


@given(rates)
def test_applied_again_and_again_it_settles_where_data_are_in_proportion_to_regret(valid):
    design, seen = DESIGN, dict(zip(SIZES, valid, strict=True))
    for _ in range(20):
        design = follow(design, proposed(seen, design, objective="regret"))
    total = sum(100 - rate for rate in valid)
    for size, share in shares(design).items():
        assert share == pytest.approx((100 - seen[size]) / total, abs=STEP), (valid, shares(design))


@given(rates, st.sampled_from(["regret", "learnability"]))
def test_holes_move_as_the_threshold_rule_moves_them(valid, objective):
    seen = dict(zip(SIZES, valid, strict=True))
    evidence = everything(DESIGN, {size: outcomes(rate) for size, rate in seen.items()})
    known = RulesTeacher.for_objective(objective).make_delta(evidence, DESIGN, SPACE).edits
    for size, edit in ProportionalTeacher(objective).make_delta(evidence, DESIGN, SPACE).edits.items():
        holes = edit.changes["hole_ratio"], known[size].changes["hole_ratio"]
        assert holes[0] == holes[1], (valid, size)
        assert edit.reason == known[size].reason, (valid, size)


def half_forced(free: int, forced: int) -> BoardOutcomes:
    """A hundred boards of each kind, and how many plans of them are valid."""
    valid = free + forced
    return BoardOutcomes(200, valid, valid, valid, {"hole": 200 - valid}, 100, forced)


@given(st.integers(0, 99), st.integers(0, 99))
def test_applied_again_and_again_waits_settle_where_both_kinds_of_boards_have_data_in_proportion(free, forced):
    design, evidence = DESIGN, {size: half_forced(free, forced) for size in SIZES}
    for _ in range(10):
        delta = ProportionalTeacher("regret").make_delta(everything(design, evidence), design, SPACE)
        design = follow(design, delta)
    target = (100 - forced) / (200 - free - forced)
    for size, row in design.strata.items():
        assert row["wait_ratio"] == pytest.approx(target, abs=0.051), (free, forced, size)


def test_waits_go_to_the_size_where_they_fail():
    seen = {4: half_forced(90, 10), 5: half_forced(10, 90), 8: outcomes(50)}
    waits = changed(ProportionalTeacher("regret").make_delta(everything(DESIGN, seen), DESIGN, SPACE), "wait_ratio")
    assert waits[4] == pytest.approx(0.2), "boards that force a wait fail there"
    assert waits[5] == pytest.approx(-0.2)
    assert waits[8] == 0, "nothing is known of boards that force a wait"


@given(rates)
def test_sizes_that_exchange_their_figures_exchange_their_edits(valid):
    here = proposed(dict(zip(SIZES, valid, strict=True))).edits
    there = proposed(dict(zip((5, 8, 4), valid, strict=True))).edits
    for size, other in zip(SIZES, (5, 8, 4), strict=True):
        assert here.get(size) == there.get(other), valid


def test_what_has_no_evidence_stays_and_keeps_its_data():
    data = changed(proposed({4: 90, 5: 10}, objective="regret"), "data_ratio")
    assert data.keys() == {4, 5}
    assert data[4] + data[5] == pytest.approx(0.0)
    assert proposed({}) == Delta({})


def test_boards_that_are_worth_nothing_anywhere_share_data_equally():
    design = design_of(EnvConfig({4: SizeConfig(0.6, 0.5, 1.0), 5: SizeConfig(0.4, 0.5, 1.0)}))
    data = changed(proposed({4: 100, 5: 100}, design), "data_ratio")
    assert [data[size] for size in (4, 5)] == pytest.approx([-0.1, 0.1])
