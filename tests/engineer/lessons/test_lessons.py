"""What a model of tokens is taught of the engineer's part."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert
from lakewright.engineer.difficulty import DifficultySettings
from lakewright.engineer.evidence import EvidenceSettings, delta_tokens, evidence_tokens, show_evidence
from lakewright.engineer.evidence.vocabulary import vocabulary_of
from lakewright.engineer.lessons import LessonSettings, _draw_late_rounds, synthetic_examples
from lakewright.engineer.space_checks import check_design
from lakewright.engineer.tally import Tally
from lakewright.engineer.teachers import ForecastTeacher, ProportionalTeacher, RulesTeacher
from lakewright.engineer.testing.strategies import spaces
from lakewright.experiments.environments.lake import design_of
from tests.support.refusals import refused
from tests.support.samples.evidence import SPACE, everything

V6 = EvidenceSettings()
DESIGN = design_of(EnvConfig({size: SizeConfig(0.25, 0.3, 0.4) for size in (3, 5, 8, 10)}))


def prompts(settings: LessonSettings, shown: EvidenceSettings = V6) -> list[list[str]]:
    lessons = settings.build_lessons("regret", shown)
    return [prompt for prompt, _ in synthetic_examples(60, DESIGN, SPACE, 4, np.random.default_rng(0), lessons)]


def rates_now(prompt: list[str]) -> list[tuple[str, str]]:
    """Of each size now, the words for the valid rate of all boards, and of those that force a wait."""
    now = prompt[prompt.index("<now>") + 1 :]
    starts = [place for place, word in enumerate(now) if word.startswith("<size_")]
    return [(now[start + 4], now[start + 12]) for start in starts]


def test_without_presets_it_learns_to_read_the_evidence_of_its_run():
    assert all("<past>" not in prompt for prompt in prompts(LessonSettings(), EvidenceSettings("v1")))
    assert all("<rollouts>" in prompt for prompt in prompts(LessonSettings(), EvidenceSettings("rl_details")))
    assert all("<case>" in prompt for prompt in prompts(LessonSettings(), EvidenceSettings(modules={"cases": True})))


def test_presets_are_all_met():
    met = prompts(LessonSettings(presets=("v1", "rl_details")))
    assert 10 < sum("<rollouts>" in prompt for prompt in met) < 50


def test_the_rule_seeks_what_boards_are_worth_in_the_run():
    taught = LessonSettings().build_lessons("regret", V6).rule
    assert isinstance(taught, ProportionalTeacher)
    assert taught.objective == "regret"
    threshold = LessonSettings(rule="rules").build_lessons("regret", V6).rule
    assert vars(threshold) == vars(RulesTeacher.for_objective("regret"))


def test_shuffled_evidence_needs_no_lessons_of_its_own_but_another_preset_does():
    lessons = LessonSettings(presets=("v6", "v1")).build_lessons("regret", V6)
    assert lessons.includes(EvidenceSettings("shuffled"))
    assert lessons.includes(EvidenceSettings("v1"))
    assert not lessons.includes(EvidenceSettings("v2"))


def test_made_up_boards_that_force_a_wait_mostly_fail_more_and_are_seldom_missing():
    shown = [rates for prompt in prompts(LessonSettings()) for rates in rates_now(prompt)]
    known = [(int(valid[2:-1]), int(forced[2:-1])) for valid, forced in shown if "<unknown>" not in (valid, forced)]
    assert 0.03 < 1 - len(known) / len(shown) < 0.2
    assert sum(forced <= valid for valid, forced in known) > 0.7 * len(known)
    assert any(forced > valid for valid, forced in known)


def test_it_may_learn_to_follow_the_forecast():
    settings = LessonSettings(rule="forecast", power=3.0)
    fitted = DifficultySettings(model="regression", by_size=2.0, reach=0.5)
    lessons = settings.build_lessons("regret", EvidenceSettings("forecast"), fitted)
    assert isinstance(lessons.rule, ForecastTeacher)
    assert lessons.rule.power == 3.0
    taught = synthetic_examples(200, DESIGN, SPACE, 4, np.random.default_rng(0), lessons)
    assert all(prompt.count("<forecast>") == len(DESIGN.strata) for prompt, _ in taught)
    told = [word for prompt, _ in taught for word in prompt[prompt.index("<forecast>") :] if word.startswith("<q")]
    assert all(told.count(f"<q{tenth}>") > 0.02 * len(told) for tenth in range(11)), "all rates of success are met"


def test_the_rule_that_follows_the_forecast_must_be_shown_one():
    with refused("lessons", "forecast", "evidence"):
        LessonSettings(rule="forecast").check(V6)
    LessonSettings(rule="forecast", presets=("v1", "difficulty")).check(V6)
    LessonSettings(rule="forecast").check(EvidenceSettings("forecast"))


def test_it_may_learn_to_follow_what_problems_gain():
    lessons = LessonSettings(rule="gain").build_lessons("learnability", EvidenceSettings("worth"))
    taught = synthetic_examples(120, DESIGN, SPACE, 4, np.random.default_rng(0), lessons)
    assert all(prompt.count("<forecast>") == 2 * len(DESIGN.strata) for prompt, _ in taught)
    assert all(set(prompt) <= set(vocabulary_of(SPACE).tokens) for prompt, _ in taught)
    gains, ups = [], []
    for prompt, answer in taught:  # strata whose worth is largest get data, those whose worth is least lose them
        told = " ".join(prompt).split("<forecast>")[1 + len(DESIGN.strata) :]
        most = [max(int(word[2:-1]) for word in one.split() if word.startswith("<q")) for one in told]
        edits = " ".join(answer)
        for place, worth in zip(SPACE.sort_strata(DESIGN.strata), most, strict=True):
            mine = edits.partition(f"<size_{place}>")[2].partition("<size_")[0]
            ups.append(("<data+" in mine) - ("<data-" in mine))
            gains.append(worth)
    assert np.corrcoef(gains, ups)[0, 1] > 0.3
    assert np.mean([up for up, worth in zip(ups, gains, strict=True) if worth < 2]) < -0.3


def test_the_rule_that_follows_gains_must_be_shown_them():
    with refused("rule is gain", "evidence.preset=worth"):
        LessonSettings(rule="gain").check(EvidenceSettings("forecast"))
    LessonSettings(rule="gain").check(EvidenceSettings("worth"))


def test_a_rule_that_follows_outcomes_is_not_taught_where_a_forecast_alone_is_shown():
    with refused("rule is proportional", "outcomes", "lessons.rule=forecast"):
        LessonSettings().check(EvidenceSettings("forecast"))
    LessonSettings().check(EvidenceSettings("none"))
    LessonSettings(presets=("v6", "forecast")).check(V6)


def test_a_power_that_the_rule_has_not_is_refused():
    with refused("power", 3, "`rules`"):
        convert({"rule": "rules", "power": 3.0}, LessonSettings, "lessons")


def test_every_other_lesson_is_of_recorded_evidence_and_is_answered_by_the_rule():
    lessons = LessonSettings().build_lessons("regret", V6)
    seen = everything(DESIGN, {size: Tally(50, 48) for size in DESIGN.strata})
    taught = synthetic_examples(20, seen.design, SPACE, 4, np.random.default_rng(0), lessons, [seen])
    view = show_evidence(seen, V6.chosen(), jax.random.key(0))
    shown = evidence_tokens(view, SPACE)
    right = delta_tokens(lessons.rule.make_delta(view, seen.design, SPACE), SPACE)
    assert [number for number, (prompt, _) in enumerate(taught) if prompt == shown] == list(range(1, 20, 2))
    assert all(answer == right for prompt, answer in taught if prompt == shown)


def test_an_unknown_preset_is_refused():
    with refused("preset", "'v9'"):
        convert({"presets": ["v9"]}, LessonSettings, "lessons")


@given(spaces(), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_late_rounds_are_designs_of_their_space_with_rates_and_rows_that_change_little(space, seed):
    rounds = _draw_late_rounds(space.uniform(), space, np.random.default_rng(seed), 4)
    within = [replace_traits(one.design, space) for one in rounds]
    for design in within:
        check_design(design, space)
    for before, after in itertools.pairwise(within):
        for stratum in space.strata:
            for knob in space.knobs:
                moved = abs(after.strata[stratum][knob.name] - before.strata[stratum][knob.name])
                assert moved <= 0.3 * max(knob.span, 1.0 * knob.trait) + knob.step + 1.0 * knob.whole


def replace_traits(design, space):
    """The design with shares of traits within their limits, as the guard leaves them."""
    rows = {stratum: dict(row) for stratum, row in design.strata.items()}
    for stratum, row in rows.items():
        for knob in space.knobs:
            low, high = space.limits(stratum, knob)
            row[knob.name] = min(high, max(low, row[knob.name])) if knob.trait else row[knob.name]
    return design.replace(rows)


def test_late_lessons_show_designs_at_the_edges_and_rates_that_are_nearly_alike():
    usual, late = (
        [word for prompt in prompts(LessonSettings(late=share)) for word in prompt[prompt.index("<now>") :]]
        for share in (0.0, 1.0)
    )

    def share_of_edges(words):
        numbers = [word for word in words if word.startswith("<q")]
        return sum(word in ("<q0>", "<q10>") for word in numbers) / len(numbers)

    assert share_of_edges(late) > share_of_edges(usual)
    spreads = []
    for share in (0.0, 1.0):
        shown = [rates_now(prompt) for prompt in prompts(LessonSettings(late=share))]
        rates = [[int(valid[2:-1]) for valid, _ in one if valid != "<unknown>"] for one in shown]
        spreads.append(np.mean([np.std(one) for one in rates]))
    assert spreads[1] < 0.8 * spreads[0]


def test_a_share_of_late_lessons_is_between_the_two():
    assert prompts(LessonSettings(late=0.5)) not in (prompts(LessonSettings()), prompts(LessonSettings(late=1.0)))
    with pytest.raises(InputError, match="late"):
        convert({"late": 1.5}, LessonSettings, "lessons")
