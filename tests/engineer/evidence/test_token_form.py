"""The token form: what the prompt shows, and a grammar whose every sentence is a delta."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import BoardOutcomes
from lakewright.core_jax.terms import FAILURE_NAMES
from lakewright.engineer.design import Delta
from lakewright.engineer.difficulty import Objective
from lakewright.engineer.evidence import (
    PRESETS,
    STRIDES,
    TOO_EASY,
    DeltaGrammar,
    Evidence,
    EvidenceSettings,
    Modules,
    delta_tokens,
    evidence_tokens,
    read_tokens,
    vocabulary_of,
)
from lakewright.engineer.lessons import LessonSettings, synthetic_examples
from lakewright.experiments.environments.lake import design_of
from tests.support.deep import count_examples
from tests.support.refusals import refused
from tests.support.samples.evidence import SPACE, V6, edit, past, view

WORDS = vocabulary_of(SPACE)

OUTCOMES = BoardOutcomes(100, 60, 40, 50, {"parse_error": 10, "hole": 25, "swap_conflict": 5}, 20, 4)
CONFIG = EnvConfig({size: SizeConfig(0.25, 0.3, 0.4) for size in (3, 5, 8, 10)})
DESIGN = design_of(CONFIG)
SEEN = dict.fromkeys(CONFIG.sizes, OUTCOMES)
LESSONS = LessonSettings(presets=tuple(PRESETS)).build_lessons("regret", EvidenceSettings())
PAST = [past(design_of(CONFIG), SEEN)] * 5

size_sets = st.lists(st.integers(3, 10), min_size=1, max_size=8, unique=True)


def evidence(**switches: bool) -> Evidence:
    return view(Modules(**switches), CONFIG, SEEN, PAST, 5, rounds=8)


@st.composite
def sentences(draw) -> tuple[DeltaGrammar, list[str]]:
    """A random walk through the grammar of random sizes."""
    grammar = DeltaGrammar(SPACE, draw(size_sets))
    tokens: list[str] = []
    while choices := grammar.allowed(tokens):
        tokens.append(draw(st.sampled_from(choices)))
    return grammar, tokens


@st.composite
def aligned_deltas(draw) -> Delta:
    """Any delta in whole steps."""
    edits = {}
    for size in draw(size_sets):
        fields = draw(st.lists(st.sampled_from(list(WORDS.steps)), min_size=1, unique=True))
        changes = {field: draw(st.sampled_from(STRIDES)) * WORDS.steps[field] for field in fields}
        edits[size] = edit(draw(st.sampled_from(list(WORDS.reasons.values()))), **changes)
    return Delta(edits)


def test_the_vocabulary_has_no_word_twice():
    assert len(set(WORDS.tokens)) == len(WORDS.tokens)
    assert all(token.startswith("<") and token.endswith(">") for token in WORDS.tokens)


def test_a_size_is_shown_in_buckets():
    config = EnvConfig.single(5, agents=2, hole_ratio=0.3, wait_ratio=0.4)
    shown_tokens = evidence_tokens(view(V6, config, {5: OUTCOMES}, round=1), SPACE)
    rates = "<q6> <q4> <q1> <q0> <q3> <q0> <q1> <q0> <q2>"
    assert " ".join(shown_tokens) == f"<guideline> <round_1> <of_3> <now> <size_5> <q10> <q6> <q4> {rates} <delta>"


def test_a_rate_of_no_boards_is_unknown():
    config = EnvConfig.single(5, agents=2, hole_ratio=0.3, wait_ratio=0.4)
    without_waits = BoardOutcomes(100, 60, 40, 50, {}, 0, 0)
    assert evidence_tokens(view(V6, config, {5: without_waits}), SPACE)[-2] == "<unknown>"
    assert evidence_tokens(view(V6, config, {8: OUTCOMES}), SPACE)[-10:-1] == ["<unknown>"] * 9


def test_four_sizes_with_every_module_take_about_a_hundred_tokens():
    shown_tokens = evidence_tokens(evidence(), SPACE)
    assert 60 <= len(shown_tokens) <= 140
    assert set(shown_tokens) <= set(WORDS.tokens)
    assert shown_tokens[-1] == "<delta>"


def test_the_last_two_rounds_are_shown():
    assert evidence_tokens(evidence(), SPACE).count("<past>") == 2


def test_modules_that_are_off_have_no_tokens():
    bare = evidence_tokens(evidence(failures=False, guideline=False, history=False, bookkeeping=False), SPACE)
    assert " ".join(bare[:6]) == "<now> <size_3> <q5> <q6> <q4> <size_5>"
    assert len(bare) == 1 + 4 * 4 + 1
    assert "<past>" not in evidence_tokens(evidence(history=False), SPACE)
    assert "<guideline>" not in evidence_tokens(evidence(guideline=False), SPACE)
    assert "<round_5>" not in evidence_tokens(evidence(bookkeeping=False), SPACE)
    bare, full = evidence_tokens(evidence(failures=False), SPACE), evidence_tokens(evidence(), SPACE)
    assert len(bare) == len(full) - 4 * 9 - 2 * 4


@given(sentences())
@settings(max_examples=count_examples(80))
def test_every_sentence_of_the_grammar_is_a_delta_and_comes_back(walk):
    _, tokens = walk
    assert set(tokens) <= set(WORDS.tokens)
    assert delta_tokens(read_tokens(tokens, SPACE), SPACE) == tokens


@given(aligned_deltas())
@settings(max_examples=count_examples(80))
def test_every_delta_in_whole_steps_is_a_sentence_and_comes_back(delta):
    grammar, tokens = DeltaGrammar(SPACE, delta.edits), delta_tokens(delta, SPACE)
    assert all(token in grammar.allowed(tokens[:index]) for index, token in enumerate(tokens))
    assert grammar.allowed(tokens) == ()
    assert read_tokens(tokens, SPACE) == delta


@given(sentences(), st.data())
@settings(max_examples=count_examples(80))
def test_a_broken_sentence_is_read_or_refused(walk, data):
    _, tokens = walk
    at = data.draw(st.integers(0, len(tokens)))
    junk = st.sampled_from([*WORDS.tokens, "", "<data+3>", "U", None, 7])
    broken = tokens[:at] + data.draw(st.lists(junk, max_size=3)) + tokens[data.draw(st.integers(at, len(tokens))) :]
    try:
        delta = read_tokens(broken, SPACE)
    except InputError:
        return
    assert delta_tokens(delta, SPACE) == broken


@given(sentences())
def test_a_sentence_without_its_end_is_refused(walk):
    with refused("<end>"):
        read_tokens(walk[1][:-1], SPACE)


def test_the_grammar_leads_from_size_to_fields_to_reason_to_later_sizes():
    grammar = DeltaGrammar(SPACE, [8, 5])
    assert grammar.allowed([]) == ("<size_5>", "<size_8>", "<end>")
    assert "<end>" not in grammar.allowed(["<size_5>"])
    assert not set(WORDS.reasons) & set(grammar.allowed(["<size_5>"]))
    assert grammar.allowed(["<size_5>", "<hole+1>"]) == ("<wait-2>", "<wait-1>", "<wait+1>", "<wait+2>", *WORDS.reasons)
    assert grammar.allowed(["<size_5>", "<wait+1>"]) == tuple(WORDS.reasons)
    assert grammar.allowed(["<size_5>", "<wait+1>", "<because_too_easy>"]) == ("<size_8>", "<end>")
    assert grammar.allowed(["<size_8>", "<wait+1>", "<because_too_easy>"]) == ("<end>",)
    assert grammar.allowed(["<end>"]) == ()


def test_every_failure_type_is_a_reason():
    assert {f"<because_{name}>" for name in FAILURE_NAMES[1:]} < set(WORDS.reasons)


def test_a_size_without_a_token_has_no_grammar():
    with refused("map size 11", "3 to 10"):
        DeltaGrammar(SPACE, [5, 11])


@pytest.mark.parametrize(
    ("size", "change", "problem"),
    [
        (5, edit(WORDS.reasons["<because_frontier>"], data_ratio=0.07), ["edits.5.data_ratio: 0.07"]),
        (5, edit(WORDS.reasons["<because_frontier>"]), ["changes nothing"]),
        (5, edit("a hunch", data_ratio=0.05), ["'a hunch'"]),
        (12, edit(WORDS.reasons["<because_frontier>"], data_ratio=0.05), ["map size 12"]),
    ],
)
def test_a_delta_without_a_token_form_is_refused(size, change, problem):
    with refused(*problem):
        delta_tokens(Delta({size: change}), SPACE)


def test_synthetic_examples_keep_to_the_vocabulary_and_the_grammar():
    examples = synthetic_examples(100, DESIGN, SPACE, 4, np.random.default_rng(0), LESSONS)
    assert len(examples) == 100
    for prompt, answer in examples:
        assert set(prompt) <= set(WORDS.tokens)
        assert prompt[-1] == "<delta>"
        assert set(read_tokens(answer, SPACE).edits) <= set(CONFIG.sizes)


def test_synthetic_examples_show_every_step_and_every_length_of_history():
    examples = synthetic_examples(300, DESIGN, SPACE, 4, np.random.default_rng(0), LESSONS)
    answered = {token for _, answer in examples for token in answer}
    assert {"<hole-2>", "<hole+2>", "<wait-1>", "<wait+1>", "<data-1>", "<data+1>"} <= answered
    assert {prompt.count("<past>") for prompt, _ in examples} == {0, 1, 2}


def test_synthetic_examples_ask_for_harder_boards_more_often_where_regret_is_sought():
    def harder(objective: Objective) -> int:
        examples = synthetic_examples(
            200,
            DESIGN,
            SPACE,
            4,
            np.random.default_rng(0),
            LessonSettings(rule="rules").build_lessons(objective, EvidenceSettings()),
        )
        return sum(answer.count(TOO_EASY) for _, answer in examples)

    assert harder("regret") > 1.5 * harder("learnability")


def test_synthetic_examples_depend_on_the_seed_alone():
    def drawn(seed: int):
        return synthetic_examples(5, DESIGN, SPACE, 3, np.random.default_rng(seed), LESSONS)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_synthetic_examples_of_a_run_without_end_take_no_longer():
    examples = synthetic_examples(20, DESIGN, SPACE, 10**9, np.random.default_rng(0), LESSONS)
    assert {prompt.count("<past>") for prompt, _ in examples} == {0, 2}, "two rounds, or in some presets none"


def test_synthetic_examples_need_a_round():
    with refused("rounds", 0):
        synthetic_examples(1, DESIGN, SPACE, 0, np.random.default_rng(0), LESSONS)
