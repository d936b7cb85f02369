"""Whatever is proposed, the guard's config is legal, within reach of the old one, and the difference is reported."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.cells import Knob
from lakewright.engineer.design import Delta, Design, Edit
from lakewright.engineer.guard import MOST_WAYS, GivenBounds, GuardSettings, GuardVerdict
from lakewright.engineer.guard import project_delta as judged
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.environments.lake import design_of
from tests.support.deep import count_examples
from tests.support.refusals import refused
from tests.support.samples.evidence import ROOMY, SPACE, edit

COLUMNS = [column.name for column in SPACE.columns]
DESIGN = design_of(EnvConfig({size: SizeConfig(0.25, 0.2, 0.3) for size in (4, 5, 6, 8)}))
GUARD = GuardSettings(floor=0.05)
TINY = 2e-6  # the grid of ratios, rounded to once or twice


def judge(design: Design, delta: Delta, guard: GuardSettings) -> GuardVerdict:
    """The verdict where all boards can be drawn."""
    return judged(design, delta, ROOMY, guard)


def change(size: int = 5, **changes: float) -> Delta:
    return Delta({size: edit("", **changes)})


def reach(guard: GuardSettings) -> dict[str, float]:
    return {column.name: guard.reach_of(column) for column in SPACE.columns}


def shares(design: Design) -> list[float]:
    return [row["data_ratio"] for row in design.strata.values()]


def values(design: Design, size: int) -> tuple[float, ...]:
    return tuple(design.strata[size][name] for name in COLUMNS)


@st.composite
def designs(draw, floor: float = 0.0) -> Design:
    """Any design; none of its data ratios below `floor`."""
    sizes = draw(st.lists(st.integers(3, 10), min_size=1, max_size=8, unique=True))
    weights = [draw(st.floats(0, 1)) for _ in sizes]
    total = math.fsum(weights)
    weights = [weight / total for weight in weights] if total > 0.01 else [1 / len(sizes)] * len(sizes)
    spare = 1 - floor * len(sizes)
    ratios = [(floor + spare * w, draw(st.floats(0, 0.5)), draw(st.floats(0, 1))) for w in weights]
    return design_of(EnvConfig({size: SizeConfig(*row) for size, row in zip(sizes, ratios, strict=True)}))


def deltas(design: Design, numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Delta]:
    edits = st.builds(edit, st.just(""), **dict.fromkeys(COLUMNS, numbers))
    return st.dictionaries(st.sampled_from(list(design.strata)), edits).map(Delta)


finite = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1, 1)
guards = st.builds(
    GuardSettings,
    floor=st.floats(0, 0.125),
    reach=st.fixed_dictionaries(dict.fromkeys(COLUMNS, st.floats(0, 1))),
    most=st.fixed_dictionaries({"hole_ratio": st.floats(0, 0.5), "wait_ratio": st.floats(0, 1)}),
)


@given(st.data())
@settings(max_examples=count_examples(100))
def test_any_delta_and_any_guard_give_a_legal_design_within_the_trust_region(data):
    design, guard = data.draw(designs()), data.draw(guards)
    verdict = judge(design, data.draw(deltas(design, finite)), guard)
    assert verdict.status != "refused"
    assert math.fsum(shares(verdict.design)) == pytest.approx(1, abs=TINY)
    assert verdict.design.given == design.given
    for size, row in verdict.design.strata.items():
        for column in SPACE.columns:
            assert column.low <= row[column.name] <= column.high
            assert abs(row[column.name] - design.strata[size][column.name]) <= reach(guard)[column.name] + TINY


@given(st.data())
@settings(max_examples=count_examples(60))
def test_from_a_legal_design_the_floor_holds(data):
    design = data.draw(designs(floor=0.05))
    verdict = judge(design, data.draw(deltas(design, finite)), GUARD)
    assert min(shares(verdict.design)) >= GUARD.floor - TINY


@given(st.data())
@settings(max_examples=count_examples(60))
def test_a_delta_of_zeros_leaves_a_legal_design_as_it_is(data):
    design = data.draw(designs(floor=0.05))
    verdict = judge(design, Delta({size: edit("") for size in design.strata}), GUARD)
    assert (verdict.status, verdict.reasons) == ("accepted", [])
    assert shares(verdict.design) == pytest.approx(shares(design), abs=TINY)


@given(st.data())
@settings(max_examples=count_examples(60))
def test_what_the_guard_gave_is_proposed_again_and_accepted(data):
    design = data.draw(designs(floor=0.05))
    first = judge(design, data.draw(deltas(design, finite)), GUARD).design
    changes = {
        size: {name: first.strata[size][name] - row[name] for name in COLUMNS} for size, row in design.strata.items()
    }
    again = judge(design, Delta({size: edit("", **row) for size, row in changes.items()}), GUARD)
    assert again.status == "accepted"
    assert shares(again.design) == pytest.approx(shares(first), abs=TINY)


@given(designs(), st.sampled_from(COLUMNS), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_numbers_that_are_not_finite_are_refused(design, column, number):
    verdict = judge(design, change(next(iter(design.strata)), **{column: number}), GUARD)
    assert verdict.status == "refused"
    assert column in verdict.reasons[0]
    assert verdict.design == design


def test_an_unknown_size_is_refused_and_the_choices_named():
    verdict = judge(DESIGN, change(7, data_ratio=0.1), GUARD)
    assert (verdict.status, verdict.design) == ("refused", DESIGN)
    assert "choose from 4, 5, 6, 8" in verdict.reasons[0]


@given(designs())
def test_a_delta_without_edits_keeps_any_design(design):
    assert judge(design, Delta({}), GUARD).design is design
    assert judge(design, Delta({}), GUARD).status == "accepted"


def test_a_legal_delta_is_accepted_as_proposed():
    edits = {5: edit("", data_ratio=0.05, wait_ratio=0.2), 8: edit("", data_ratio=-0.05)}
    verdict = judge(DESIGN, Delta(edits), GUARD)
    assert (verdict.status, verdict.reasons) == ("accepted", [])
    assert values(verdict.design, 5) == pytest.approx((0.3, 0.2, 0.5))
    assert verdict.design.strata[4] == DESIGN.strata[4]


def test_what_was_changed_is_reported_with_field_proposed_and_applied():
    verdict = judge(DESIGN, change(hole_ratio=-0.3), GUARD)
    assert verdict.status == "projected"
    assert verdict.reasons == ["sizes.5.hole_ratio: proposed -0.1, applied 0.1"]


def test_a_set_limit_binds_before_the_range():
    limited = GuardSettings(most={"hole_ratio": 0.25, "wait_ratio": 0.4})
    verdict = judge(DESIGN, change(hole_ratio=0.1, wait_ratio=0.2), limited)
    assert values(verdict.design, 5) == (0.25, 0.25, 0.4)


def test_data_for_one_size_is_taken_from_the_others_in_proportion_to_their_excess():
    verdict = judge(DESIGN, change(data_ratio=0.1), GUARD)
    assert shares(verdict.design) == pytest.approx([0.05 + 0.8 * e / 0.9 for e in (0.2, 0.3, 0.2, 0.2)], abs=TINY)


def test_a_change_of_data_beyond_the_trust_region_is_scaled_as_a_whole():
    verdict = judge(DESIGN, change(data_ratio=0.75), GUARD)
    assert shares(verdict.design) == pytest.approx([0.2, 0.4, 0.2, 0.2])


def test_a_design_below_the_floor_is_brought_to_it_before_it_is_edited():
    design = design_of(EnvConfig({4: SizeConfig(0, 0.1, 0), 5: SizeConfig(0.5, 0.1, 0), 6: SizeConfig(0.5, 0.1, 0)}))
    verdict = judge(design, change(data_ratio=0.5), GUARD)
    assert min(shares(verdict.design)) >= GUARD.floor - TINY
    assert verdict.design.strata[5]["data_ratio"] > 0.5


def test_where_the_trust_region_is_too_small_the_floor_is_reached_over_rounds():
    design = design_of(EnvConfig({4: SizeConfig(0, 0.1, 0), 5: SizeConfig(1, 0.1, 0)}))
    guard, lows = GuardSettings(floor=0.1, reach={"data_ratio": 0.04}), []
    for _ in range(3):
        design = judge(design, change(wait_ratio=0.1), guard).design
        lows.append(min(shares(design)))
    assert lows == pytest.approx([0.04, 0.08, 0.1])


def test_a_floor_too_high_for_the_sizes_is_an_error_of_the_settings():
    with refused("floor 0.3 x 4 sizes", 1):
        judge(DESIGN, Delta({}), GuardSettings(floor=0.3))
    assert judge(DESIGN, change(data_ratio=0.1), GuardSettings(floor=0.25)).design == DESIGN


@pytest.mark.parametrize("field", ["floor", "widen"])
@pytest.mark.parametrize("value", [-0.1, 100.1, math.nan])
def test_settings_outside_their_range_are_refused(field, value):
    with refused(f"guard: {field}", value, "0 to"):
        GuardSettings(**{field: value})


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
def test_a_reach_that_is_no_distance_is_refused(column, value):
    with refused(f"guard: reach.{column}"):
        GuardSettings(reach={column: value})


def test_no_tries_are_refused():
    with refused("guard: tries", 0):
        GuardSettings(tries=0)


@pytest.mark.parametrize("value", [-0.1, 100.1, math.nan, math.inf])
@pytest.mark.parametrize(("knob", "top"), [("hole_ratio", "0.5"), ("wait_ratio", "1")])
def test_a_limit_outside_the_range_of_its_knob_is_refused(knob, top, value):
    with refused(f"guard: most.{knob}", value, f"0 to {top}"):
        judge(DESIGN, change(data_ratio=0.1), GuardSettings(most={knob: value}))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"reach": {"holes": 0.1}}, ["guard: reach.holes", "data_ratio, hole_ratio, wait_ratio"]),
        ({"most": {"data_ratio": 0.5}}, ["guard: most.data_ratio", "hole_ratio, wait_ratio"]),
    ],
)
def test_a_name_that_the_space_lacks_is_refused_and_the_choices_named(settings, problem):
    with refused(*problem):
        judge(DESIGN, Delta({}), GuardSettings(**settings))


WHOLE = DesignSpace(("a",), [Knob(name="n", low=1, high=9, reach=2, step=1, whole=True)])


@pytest.mark.parametrize(
    ("guard", "after"),
    [
        (GuardSettings(floor=0.05), 6),
        (GuardSettings(reach={"n": 0.5}), 5),
        (GuardSettings(reach={"n": 0.0}), 4),
        (GuardSettings(most={"n": 5.5}), 5),
    ],
)
def test_a_whole_knob_goes_no_further_than_its_reach_and_its_limit(guard, after):
    design = WHOLE.design({"a": {"share": 1.0, "n": 4}})
    bounds = GivenBounds(WHOLE, lambda cell: True)
    verdict = judged(design, Delta({"a": Edit({"n": 4.0}, "")}), bounds, guard)
    assert verdict.design.strata["a"]["n"] == after


def test_the_fewest_knobs_go_back_to_what_can_be_drawn():
    space = DesignSpace(("a",), [Knob(name=f"k{place}") for place in range(3)])
    bounds = GivenBounds(space, lambda cell: cell["k0"] <= 0.5 or (cell["k1"] <= 0.5 and cell["k2"] <= 0.5))
    change = Edit(dict.fromkeys(("k0", "k1", "k2"), 0.1), "")
    verdict = judged(space.uniform(), Delta({"a": change}), bounds, GuardSettings(floor=0.05))
    assert list(verdict.design.strata["a"].values()) == [1.0, 0.5, 0.6, 0.6]


def test_of_very_many_knobs_all_go_back_where_few_do_not_help():
    space, asked = DesignSpace(("a",), [Knob(name=f"k{place}") for place in range(60)]), []

    def is_middle(cell):
        asked.append(cell)
        return set(cell.values) == {0.5}

    change = Edit({knob.name: 0.1 for knob in space.knobs}, "")
    verdict = judged(space.uniform(), Delta({"a": change}), GivenBounds(space, is_middle), GuardSettings(floor=0.05))
    assert verdict.design == space.uniform()
    assert len(asked) <= MOST_WAYS + 1
