"""The examination: how often answers are those of the rule, and how often they would be by chance."""

import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.delta import ConfigDelta, SizeEdit
from lakewright.engineer.evidence import EvidenceSettings, delta_tokens
from lakewright.engineer.lessons import LessonSettings, agreement, examined, synthetic_examples

CONFIG = EnvConfig({size: SizeConfig(0.25, 0.3, 0.4) for size in (3, 4, 5, 6)})
LESSONS = LessonSettings().lessons("regret", EvidenceSettings())
QUESTIONS = synthetic_examples(40, CONFIG, 4, np.random.default_rng(0), LESSONS)


def test_an_engineer_that_answers_as_the_rule_agrees_with_it_and_does_so_by_reading():
    known = {" ".join(prompt): answer for prompt, answer in QUESTIONS}
    found = examined(QUESTIONS, CONFIG, lambda prompt, allowed: known[" ".join(prompt)])
    assert (found.questions, found.agreement) == (40, 1.0)
    assert found.chance < 0.6


def test_an_engineer_that_always_says_the_same_agrees_no_more_than_by_chance():
    same = QUESTIONS[0][1]
    found = examined(QUESTIONS, CONFIG, lambda prompt, allowed: same)
    assert found.agreement == pytest.approx(found.chance), "every question gets every answer once"
    assert found.agreement < 0.6


def test_what_is_left_out_counts_as_no_change():
    silent = delta_tokens(ConfigDelta({}))
    examples = [(["<delta>"], silent), (["<delta>"], QUESTIONS[0][1])]
    found = examined(examples, CONFIG, lambda prompt, allowed: silent)
    changes = QUESTIONS[0][1]
    moved = sum(word.startswith(("<data", "<hole", "<wait")) for word in changes)
    assert found.agreement == pytest.approx(1 - moved / 24)


def test_answers_are_asked_for_under_the_grammar_of_the_sizes():
    def first(prompt, allowed):
        assert set(allowed([])) == {"<size_3>", "<size_4>", "<size_5>", "<size_6>", "<end>"}
        return ["<end>"]

    assert examined(QUESTIONS[:2], CONFIG, first).questions == 2


def test_two_deltas_agree_where_they_make_the_same_steps():
    one = ConfigDelta(
        {3: SizeEdit(data_ratio=0.1, hole_ratio=-0.05, reason="one"), 4: SizeEdit(wait_ratio=0.1, reason="")}
    )
    other = ConfigDelta({3: SizeEdit(data_ratio=0.1, hole_ratio=-0.1, reason="another")})
    assert agreement(one, one, CONFIG) == 1
    assert agreement(one, other, CONFIG) == agreement(other, one, CONFIG) == 10 / 12
