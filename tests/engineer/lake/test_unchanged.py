"""The engineer of the lake gives what it gave when it knew the lake alone, before it was made of any design space.

`inputs.json` has four rounds of evidence in the lake's form on disk; `recorded.json` has what the engineer made of them
right after that change, when a comparison with the engineer before it found no difference. Long outputs are recorded as
digests. What is fitted differs a little from machine to machine, and what is drawn from a fitted covariance by much; so
draws are of models without doubt.
"""

import json
from typing import Any

import pytest

from lakewright.engineer.evidence import vocabulary_of
from tests.support.samples.evidence import SPACE
from tests.support.unchanged.lake_outputs import (
    LESSONS,
    tell_fitted,
    tell_forms,
    tell_lessons,
    tell_models,
    tell_proposals,
    tell_questions,
    tell_verdicts,
)
from tests.support.unchanged.lake_rounds import DRAWN, FITTED, FOLDER, RAW, ROUNDS, assert_close, known, label, plain

RECORDED = json.loads((FOLDER / "recorded.json").read_text())
TEACHERS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("fixed", "static", "domain_randomisation", "random", "rules", "proportional")),
    *((name, {}) for name in ("e2h_cosine", "e2h_gaussian", "adarft", "sec", "thompson", "sfl", "rlve", "dump")),
    *((name, {}) for name in ("forecast", "saboteur", "matched_random", "self", "self_trained", "base", "endpoint")),
    ("static", {"hole_ratio": 0.4, "tilt": 2.0}),
    ("proportional", {"objective": "regret", "power": 2.0}),
    ("rules", {"easier_below": 0.1, "harder_above": 0.4}),
]
FITTING: list[tuple[str, dict[str, Any]]] = [
    ("alp_gmm", {}),
    ("difficulty", {}),
    ("difficulty", {"power": 3.0, "length": 1.0}),
    ("difficulty", {"group": 8}),
]


def cases(teachers: list[tuple[str, dict[str, Any]]]) -> Any:
    return pytest.mark.parametrize(("name", "options"), teachers, ids=[label(*one) for one in teachers])


rounds = pytest.mark.parametrize("round", ROUNDS)


@rounds
def test_evidence_goes_back_into_the_form_it_came_in(round):
    assert plain(known(round).evidence) == RAW[round]["evidence"]


def test_the_words_are_those_of_checkpoints():
    assert list(vocabulary_of(SPACE).tokens) == RECORDED["tokens"]


@rounds
@cases(TEACHERS)
def test_a_teacher_proposes_what_it_proposed(name, options, round):
    assert tell_proposals(name, options, round) == RECORDED["teachers"][label(name, options)][round]


@rounds
@cases(FITTING)
def test_a_teacher_that_fits_proposes_what_it_proposed(name, options, round):
    recorded = RECORDED["fitting"][label(name, options)][round]
    assert_close(tell_fitted(name, options, round), recorded, tolerance=DRAWN if name == "alp_gmm" else FITTED)


@rounds
def test_the_guard_gives_the_verdicts_it_gave(round):
    assert tell_verdicts(round) == RECORDED["verdicts"][round]


@rounds
@pytest.mark.parametrize("preset", RECORDED["forms"])
def test_evidence_is_shown_as_it_was(preset, round):
    assert tell_forms(round, preset) == RECORDED["forms"][preset][round]


@rounds
def test_models_are_asked_what_they_were_asked(round):
    assert plain(tell_questions(round)) == RECORDED["questions"][round]


@pytest.mark.parametrize("round", ["small", "all", "one-agent"])
@pytest.mark.parametrize("rule", LESSONS)
def test_lessons_teach_what_they_taught(rule, round):
    assert tell_lessons(round, rule) == RECORDED["lessons"][rule][round]


@rounds
def test_a_difficulty_model_says_what_it_said(round):
    assert_close(tell_models(round), RECORDED["models"][round])
