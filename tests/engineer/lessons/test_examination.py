"""The examination: how often answers are those of the rule, and how often they would be by chance."""

import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.design import Delta
from lakewright.engineer.evidence import EvidenceSettings, delta_tokens
from lakewright.engineer.lessons import LessonSettings, examine_engineer, measure_agreement, synthetic_examples
from lakewright.experiments.environments.lake import design_of
from tests.support.samples.evidence import SPACE, edit

DESIGN = design_of(EnvConfig({size: SizeConfig(0.25, 0.3, 0.4) for size in (3, 4, 5, 6)}))
LESSONS = LessonSettings().build_lessons("regret", EvidenceSettings())
QUESTIONS = synthetic_examples(40, DESIGN, SPACE, 4, np.random.default_rng(0), LESSONS)


def test_an_engineer_that_answers_as_the_rule_agrees_with_it_and_does_so_by_reading():
    known = {" ".join(prompt): answer for prompt, answer in QUESTIONS}
    found = examine_engineer(QUESTIONS, DESIGN, SPACE, lambda prompt, allowed: known[" ".join(prompt)])
    assert (found.questions, found.agreement) == (40, 1.0)
    assert found.chance < 0.6


def test_an_engineer_that_always_says_the_same_agrees_no_more_than_by_chance():
    same = QUESTIONS[0][1]
    found = examine_engineer(QUESTIONS, DESIGN, SPACE, lambda prompt, allowed: same)
    assert found.agreement == pytest.approx(found.chance), "every question gets every answer once"
    assert found.agreement < 0.6


def test_what_is_left_out_counts_as_no_change():
    silent = delta_tokens(Delta({}), SPACE)
    examples = [(["<delta>"], silent), (["<delta>"], QUESTIONS[0][1])]
    found = examine_engineer(examples, DESIGN, SPACE, lambda prompt, allowed: silent)
    changes = QUESTIONS[0][1]
    moved = sum(word.startswith(("<data", "<hole", "<wait")) for word in changes)
    assert found.agreement == pytest.approx(1 - moved / 24)


def test_answers_are_asked_for_under_the_grammar_of_the_sizes():
    def first(prompt, allowed):
        assert set(allowed([])) == {"<size_3>", "<size_4>", "<size_5>", "<size_6>", "<end>"}
        return ["<end>"]

    assert examine_engineer(QUESTIONS[:2], DESIGN, SPACE, first).questions == 2


def test_two_deltas_agree_where_they_make_the_same_steps():
    one = Delta({3: edit("one", data_ratio=0.1, hole_ratio=-0.05), 4: edit("", wait_ratio=0.1)})
    other = Delta({3: edit("another", data_ratio=0.1, hole_ratio=-0.1)})
    assert measure_agreement(one, one, DESIGN, SPACE) == 1
    assert measure_agreement(one, other, DESIGN, SPACE) == measure_agreement(other, one, DESIGN, SPACE) == 10 / 12
