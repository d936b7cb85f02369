"""The token form: what the prompt shows, and a grammar whose every sentence is a delta."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import Outcomes
from lakewright.core_jax.types import FAILURE_NAMES
from lakewright.engineer.delta import ConfigDelta, SizeEdit
from lakewright.engineer.difficulty import Objective
from lakewright.engineer.evidence import (
    ENGINEER_TOKENS,
    PRESETS,
    REASONS,
    STEPS,
    STRIDES,
    DeltaGrammar,
    Evidence,
    EvidenceSettings,
    Round,
    delta_tokens,
    evidence_tokens,
    tokens_delta,
)
from lakewright.engineer.evidence.context_modules import Modules
from lakewright.engineer.evidence.vocabulary import TOO_EASY
from lakewright.engineer.lessons import LessonSettings, synthetic_examples
from tests.support.samples.evidence import V6, view

OUTCOMES = Outcomes(100, 60, 40, 50, {"parse_error": 10, "hole": 25, "swap_conflict": 5}, 20, 4)
CONFIG = EnvConfig({size: SizeConfig(0.25, 0.3, 0.4) for size in (3, 5, 8, 10)})
SEEN = dict.fromkeys(CONFIG.sizes, OUTCOMES)
LESSONS = LessonSettings(presets=tuple(PRESETS)).lessons("regret", EvidenceSettings())
PAST = [Round(CONFIG, SEEN)] * 5

size_sets = st.lists(st.integers(3, 10), min_size=1, max_size=8, unique=True)


def evidence(**switches: bool) -> Evidence:
    return view(Modules(**switches), CONFIG, SEEN, PAST, 5, rounds=8)


@st.composite
def sentences(draw) -> tuple[DeltaGrammar, list[str]]:
    """A random walk through the grammar of random sizes."""
    grammar = DeltaGrammar(draw(size_sets))
    tokens: list[str] = []
    while choices := grammar.allowed(tokens):
        tokens.append(draw(st.sampled_from(choices)))
    return grammar, tokens


@st.composite
def aligned_deltas(draw) -> ConfigDelta:
    """Any delta in whole steps."""
    edits = {}
    for size in draw(size_sets):
        fields = draw(st.lists(st.sampled_from(list(STEPS)), min_size=1, unique=True))
        changes = {field: draw(st.sampled_from(STRIDES)) * STEPS[field] for field in fields}
        edits[size] = SizeEdit(**changes, reason=draw(st.sampled_from(list(REASONS.values()))))
    return ConfigDelta(edits)


def test_the_vocabulary_has_no_word_twice():
    assert len(set(ENGINEER_TOKENS)) == len(ENGINEER_TOKENS)
    assert all(token.startswith("<") and token.endswith(">") for token in ENGINEER_TOKENS)


def test_a_size_is_shown_in_buckets():
    config = EnvConfig.single(5, agents=2, hole_ratio=0.3, wait_ratio=0.4)
    shown_tokens = evidence_tokens(view(V6, config, {5: OUTCOMES}, round=1))
    rates = "<q6> <q4> <q1> <q0> <q3> <q0> <q1> <q0> <q2>"
    assert " ".join(shown_tokens) == f"<guideline> <round_1> <of_3> <now> <size_5> <q10> <q6> <q4> {rates} <delta>"


def test_a_rate_of_no_boards_is_unknown():
    config = EnvConfig.single(5, agents=2, hole_ratio=0.3, wait_ratio=0.4)
    without_waits = Outcomes(100, 60, 40, 50, {}, 0, 0)
    assert evidence_tokens(view(V6, config, {5: without_waits}))[-2] == "<unknown>"
    assert evidence_tokens(view(V6, config, {8: OUTCOMES}))[-10:-1] == ["<unknown>"] * 9


def test_four_sizes_with_every_module_take_about_a_hundred_tokens():
    shown_tokens = evidence_tokens(evidence())
    assert 60 <= len(shown_tokens) <= 140
    assert set(shown_tokens) <= set(ENGINEER_TOKENS)
    assert shown_tokens[-1] == "<delta>"


def test_the_last_two_rounds_are_shown():
    assert evidence_tokens(evidence()).count("<past>") == 2


def test_modules_that_are_off_have_no_tokens():
    bare = evidence_tokens(evidence(failures=False, guideline=False, history=False, bookkeeping=False))
    assert " ".join(bare[:6]) == "<now> <size_3> <q5> <q6> <q4> <size_5>"
    assert len(bare) == 1 + 4 * 4 + 1
    assert "<past>" not in evidence_tokens(evidence(history=False))
    assert "<guideline>" not in evidence_tokens(evidence(guideline=False))
    assert "<round_5>" not in evidence_tokens(evidence(bookkeeping=False))
    assert len(evidence_tokens(evidence(failures=False))) == len(evidence_tokens(evidence())) - 4 * 9 - 2 * 4


@given(sentences())
@settings(max_examples=250)
def test_every_sentence_of_the_grammar_is_a_delta_and_comes_back(walk):
    _, tokens = walk
    assert set(tokens) <= set(ENGINEER_TOKENS)
    assert delta_tokens(tokens_delta(tokens)) == tokens


@given(aligned_deltas())
@settings(max_examples=250)
def test_every_delta_in_whole_steps_is_a_sentence_and_comes_back(delta):
    grammar, tokens = DeltaGrammar(delta.edits), delta_tokens(delta)
    assert all(token in grammar.allowed(tokens[:index]) for index, token in enumerate(tokens))
    assert grammar.allowed(tokens) == ()
    assert tokens_delta(tokens) == delta


@given(sentences(), st.data())
@settings(max_examples=250)
def test_a_broken_sentence_is_read_or_refused(walk, data):
    _, tokens = walk
    at = data.draw(st.integers(0, len(tokens)))
    junk = st.sampled_from([*ENGINEER_TOKENS, "", "<data+3>", "U", None, 7])
    broken = tokens[:at] + data.draw(st.lists(junk, max_size=3)) + tokens[data.draw(st.integers(at, len(tokens))) :]
    try:
        delta = tokens_delta(broken)
    except InputError:
        return
    assert delta_tokens(delta) == broken


@given(sentences())
def test_a_sentence_without_its_end_is_refused(walk):
    with pytest.raises(InputError, match="without <end>"):
        tokens_delta(walk[1][:-1])


def test_the_grammar_leads_from_size_to_fields_to_reason_to_later_sizes():
    grammar = DeltaGrammar([8, 5])
    assert grammar.allowed([]) == ("<size_5>", "<size_8>", "<end>")
    assert "<end>" not in grammar.allowed(["<size_5>"])
    assert not set(REASONS) & set(grammar.allowed(["<size_5>"]))
    assert grammar.allowed(["<size_5>", "<hole+1>"]) == ("<wait-2>", "<wait-1>", "<wait+1>", "<wait+2>", *REASONS)
    assert grammar.allowed(["<size_5>", "<wait+1>"]) == tuple(REASONS)
    assert grammar.allowed(["<size_5>", "<wait+1>", "<because_too_easy>"]) == ("<size_8>", "<end>")
    assert grammar.allowed(["<size_8>", "<wait+1>", "<because_too_easy>"]) == ("<end>",)
    assert grammar.allowed(["<end>"]) == ()


def test_every_failure_type_is_a_reason():
    assert {f"<because_{name}>" for name in FAILURE_NAMES[1:]} < set(REASONS)


def test_a_size_without_a_token_has_no_grammar():
    with pytest.raises(InputError, match="map size 11 has no token; choose 3 to 10"):
        DeltaGrammar([5, 11])


@pytest.mark.parametrize(
    ("size", "edit", "problem"),
    [
        (5, SizeEdit(data_ratio=0.07, reason=REASONS["<because_frontier>"]), "edits.5.data_ratio: 0.07 has no token"),
        (5, SizeEdit(reason=REASONS["<because_frontier>"]), "changes nothing"),
        (5, SizeEdit(data_ratio=0.05, reason="a hunch"), "'a hunch' has no token"),
        (12, SizeEdit(data_ratio=0.05, reason=REASONS["<because_frontier>"]), "map size 12 has no token"),
    ],
)
def test_a_delta_without_a_token_form_is_refused(size, edit, problem):
    with pytest.raises(InputError, match=problem):
        delta_tokens(ConfigDelta({size: edit}))


def test_synthetic_examples_keep_to_the_vocabulary_and_the_grammar():
    examples = synthetic_examples(100, CONFIG, 4, np.random.default_rng(0), LESSONS)
    assert len(examples) == 100
    for prompt, answer in examples:
        assert set(prompt) <= set(ENGINEER_TOKENS)
        assert prompt[-1] == "<delta>"
        assert set(tokens_delta(answer).edits) <= set(CONFIG.sizes)


def test_synthetic_examples_show_every_step_and_every_length_of_history():
    examples = synthetic_examples(300, CONFIG, 4, np.random.default_rng(0), LESSONS)
    answered = {token for _, answer in examples for token in answer}
    assert {"<hole-2>", "<hole+2>", "<wait-1>", "<wait+1>", "<data-1>", "<data+1>"} <= answered
    assert {prompt.count("<past>") for prompt, _ in examples} == {0, 1, 2}


def test_synthetic_examples_ask_for_harder_boards_more_often_where_regret_is_sought():
    def harder(objective: Objective) -> int:
        examples = synthetic_examples(
            200,
            CONFIG,
            4,
            np.random.default_rng(0),
            LessonSettings(rule="rules").lessons(objective, EvidenceSettings()),
        )
        return sum(answer.count(TOO_EASY) for _, answer in examples)

    assert harder("regret") > 1.5 * harder("learnability")


def test_synthetic_examples_depend_on_the_seed_alone():
    def drawn(seed: int):
        return synthetic_examples(5, CONFIG, 3, np.random.default_rng(seed), LESSONS)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_synthetic_examples_of_a_run_without_end_take_no_longer():
    examples = synthetic_examples(20, CONFIG, 10**9, np.random.default_rng(0), LESSONS)
    assert {prompt.count("<past>") for prompt, _ in examples} == {0, 2}, "two rounds, or in some presets none"


def test_synthetic_examples_need_a_round():
    with pytest.raises(InputError, match="rounds is 0; choose at least 1"):
        synthetic_examples(1, CONFIG, 0, np.random.default_rng(0), LESSONS)
