"""Whatever is proposed, the guard's config is legal, within reach of the old one, and the difference is reported."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.engineer.delta import FIELDS, ConfigDelta, SizeEdit
from lakewright.engineer.guard import GuardSettings, GuardVerdict
from lakewright.engineer.guard import judge as judged

CONFIG = EnvConfig({size: SizeConfig(0.25, 0.2, 0.3) for size in (4, 5, 6, 8)})
GUARD = GuardSettings()
TINY = 2e-6  # the grid of ratios, rounded to once or twice


def judge(config: EnvConfig, delta: ConfigDelta, guard: GuardSettings) -> GuardVerdict:
    """The verdict where all boards can be drawn."""
    return judged(config, delta, guard, lambda *cell: True)


def change(size: int = 5, **changes: float) -> ConfigDelta:
    return ConfigDelta({size: SizeEdit(**changes, reason="")})


def reach(guard: GuardSettings) -> dict[str, float]:
    return dict(zip(FIELDS, (guard.max_data_change, guard.max_hole_change, guard.max_wait_change), strict=True))


def shares(config: EnvConfig) -> list[float]:
    return [cell.data_ratio for cell in config.sizes.values()]


@st.composite
def configs(draw, floor: float = 0.0) -> EnvConfig:
    """Any config; none of its data ratios below `floor`."""
    sizes = draw(st.lists(st.integers(3, 10), min_size=1, max_size=8, unique=True))
    weights = [draw(st.floats(0, 1)) for _ in sizes]
    total = math.fsum(weights)
    weights = [weight / total for weight in weights] if total > 0.01 else [1 / len(sizes)] * len(sizes)
    spare = 1 - floor * len(sizes)
    ratios = [(floor + spare * w, draw(st.floats(0, 0.5)), draw(st.floats(0, 1))) for w in weights]
    return EnvConfig({size: SizeConfig(*row) for size, row in zip(sizes, ratios, strict=True)})


def deltas(config: EnvConfig, numbers: st.SearchStrategy[float]) -> st.SearchStrategy[ConfigDelta]:
    edits = st.builds(SizeEdit, data_ratio=numbers, hole_ratio=numbers, wait_ratio=numbers, reason=st.just(""))
    return st.dictionaries(st.sampled_from(list(config.sizes)), edits).map(ConfigDelta)


finite = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1, 1)
guards = st.builds(
    GuardSettings,
    floor=st.floats(0, 0.125),
    max_data_change=st.floats(0, 1),
    max_hole_change=st.floats(0, 1),
    max_wait_change=st.floats(0, 1),
    max_hole_ratio=st.floats(0, 0.5),
    max_wait_ratio=st.floats(0, 1),
)


@given(st.data())
@settings(max_examples=300)
def test_any_delta_and_any_guard_give_a_legal_config_within_the_trust_region(data):
    config, guard = data.draw(configs()), data.draw(guards)
    verdict = judge(config, data.draw(deltas(config, finite)), guard)
    assert verdict.status != "refused"
    assert math.fsum(shares(verdict.config)) == pytest.approx(1, abs=TINY)
    for size, cell in verdict.config.sizes.items():
        for field, most in reach(guard).items():
            assert abs(getattr(cell, field) - getattr(config.sizes[size], field)) <= most + TINY


@given(st.data())
@settings(max_examples=200)
def test_from_a_legal_config_the_floor_holds(data):
    config = data.draw(configs(floor=0.05))
    verdict = judge(config, data.draw(deltas(config, finite)), GUARD)
    assert min(shares(verdict.config)) >= GUARD.floor - TINY


@given(st.data())
@settings(max_examples=200)
def test_a_delta_of_zeros_leaves_a_legal_config_as_it_is(data):
    config = data.draw(configs(floor=0.05))
    verdict = judge(config, ConfigDelta({size: SizeEdit(reason="") for size in config.sizes}), GUARD)
    assert (verdict.status, verdict.reasons) == ("accepted", [])
    assert shares(verdict.config) == pytest.approx(shares(config), abs=TINY)


@given(st.data())
@settings(max_examples=200)
def test_what_the_guard_gave_is_proposed_again_and_accepted(data):
    config = data.draw(configs(floor=0.05))
    first = judge(config, data.draw(deltas(config, finite)), GUARD).config
    changes = {
        size: {field: getattr(first.sizes[size], field) - getattr(cell, field) for field in FIELDS}
        for size, cell in config.sizes.items()
    }
    again = judge(config, ConfigDelta({s: SizeEdit(**row, reason="") for s, row in changes.items()}), GUARD)
    assert again.status == "accepted"
    assert shares(again.config) == pytest.approx(shares(first), abs=TINY)


@given(configs(), st.sampled_from(FIELDS), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_numbers_that_are_not_finite_are_refused(config, field, number):
    verdict = judge(config, change(next(iter(config.sizes)), **{field: number}), GUARD)
    assert verdict.status == "refused"
    assert field in verdict.reasons[0]
    assert verdict.config == config


def test_an_unknown_size_is_refused_and_the_choices_named():
    verdict = judge(CONFIG, change(7, data_ratio=0.1), GUARD)
    assert (verdict.status, verdict.config) == ("refused", CONFIG)
    assert "choose from 4, 5, 6, 8" in verdict.reasons[0]


@given(configs())
def test_a_delta_without_edits_keeps_any_config(config):
    assert judge(config, ConfigDelta({}), GUARD).config is config
    assert judge(config, ConfigDelta({}), GUARD).status == "accepted"


def test_a_legal_delta_is_accepted_as_proposed():
    edits = {5: SizeEdit(data_ratio=0.05, wait_ratio=0.2, reason=""), 8: SizeEdit(data_ratio=-0.05, reason="")}
    verdict = judge(CONFIG, ConfigDelta(edits), GUARD)
    assert (verdict.status, verdict.reasons) == ("accepted", [])
    assert verdict.config.sizes[5].data_ratio == pytest.approx(0.3)
    assert verdict.config.sizes[5].wait_ratio == pytest.approx(0.5)
    assert verdict.config.sizes[4] == CONFIG.sizes[4]


def test_what_was_changed_is_reported_with_field_proposed_and_applied():
    verdict = judge(CONFIG, change(hole_ratio=-0.3), GUARD)
    assert verdict.status == "projected"
    assert verdict.reasons == ["sizes.5.hole_ratio: proposed -0.1, applied 0.1"]


def test_a_set_limit_binds_before_the_range():
    verdict = judge(
        CONFIG, change(hole_ratio=0.1, wait_ratio=0.2), GuardSettings(max_hole_ratio=0.25, max_wait_ratio=0.4)
    )
    assert verdict.config.sizes[5].hole_ratio == 0.25
    assert verdict.config.sizes[5].wait_ratio == 0.4


def test_data_for_one_size_is_taken_from_the_others_in_proportion_to_their_excess():
    verdict = judge(CONFIG, change(data_ratio=0.1), GUARD)
    assert shares(verdict.config) == pytest.approx([0.05 + 0.8 * e / 0.9 for e in (0.2, 0.3, 0.2, 0.2)], abs=TINY)


def test_a_change_of_data_beyond_the_trust_region_is_scaled_as_a_whole():
    verdict = judge(CONFIG, change(data_ratio=0.75), GUARD)
    assert shares(verdict.config) == pytest.approx([0.2, 0.4, 0.2, 0.2])


def test_a_config_below_the_floor_is_brought_to_it_before_it_is_edited():
    config = EnvConfig({4: SizeConfig(0, 0.1, 0), 5: SizeConfig(0.5, 0.1, 0), 6: SizeConfig(0.5, 0.1, 0)})
    verdict = judge(config, change(data_ratio=0.5), GUARD)
    assert min(shares(verdict.config)) >= GUARD.floor - TINY
    assert verdict.config.sizes[5].data_ratio > 0.5


def test_where_the_trust_region_is_too_small_the_floor_is_reached_over_rounds():
    config = EnvConfig({4: SizeConfig(0, 0.1, 0), 5: SizeConfig(1, 0.1, 0)})
    guard, lows = GuardSettings(floor=0.1, max_data_change=0.04), []
    for _ in range(3):
        config = judge(config, change(wait_ratio=0.1), guard).config
        lows.append(min(shares(config)))
    assert lows == pytest.approx([0.04, 0.08, 0.1])


def test_a_floor_too_high_for_the_sizes_is_an_error_of_the_settings():
    with pytest.raises(InputError, match=r"floor 0.3 x 4 sizes is more than 1; choose at most 0.25"):
        judge(CONFIG, ConfigDelta({}), GuardSettings(floor=0.3))
    assert judge(CONFIG, change(data_ratio=0.1), GuardSettings(floor=0.25)).config == CONFIG


@pytest.mark.parametrize("field", [name for name in GuardSettings.__struct_fields__ if name != "tries"])
@pytest.mark.parametrize("value", [-0.1, 100.1, math.nan])
def test_settings_outside_their_range_are_refused(field, value):
    with pytest.raises(InputError, match=f"guard: {field} is .*; choose 0 to"):
        GuardSettings(**{field: value})
