"""What checkpoints and folders of earlier versions rely on: the lake's words, its evidence in tokens, and its form.

`inputs.json` has four rounds of evidence in the lake's form on disk; `recorded.json` has the words, the evidence in the
tokens that engineers were trained to read, and the tokens with which they may answer, before the engineer was made of
any design space. Long ones are digests. Nothing else is frozen here: proposals, verdicts and texts may get better.
"""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import msgspec
import pytest

from lakewright.engineer.evidence import (
    PRESETS,
    DeltaGrammar,
    Evidence,
    Modules,
    evidence_tokens,
    read_evidence,
    show_evidence,
    vocabulary_of,
)
from lakewright.engineer.tally import Tally
from lakewright.experiments.loop.records.lake_form import from_lake, to_lake
from tests.support.samples.evidence import SPACE, RoomyLake

FOLDER = Path(__file__).parent
RAW = json.loads((FOLDER / "inputs.json").read_text())
RECORDED = json.loads((FOLDER / "recorded.json").read_text())
EVERYTHING = Modules(statistics=True, cases=True, difficulty=True, self_summary=True, rl_details=True)
rounds = pytest.mark.parametrize("round", RAW)


@functools.cache
def evidence_of(round: str) -> Evidence:
    """The evidence of a round."""
    return read_evidence(from_lake(RAW[round], Evidence), round)


def space_of(round: str) -> Any:
    """The design space of a round's boards."""
    return RoomyLake(int(evidence_of(round).design.given["agents"]), RAW[round]["teams"]).space


@rounds
def test_evidence_goes_back_into_the_form_it_came_in(round):
    assert json.loads(msgspec.json.encode(to_lake(evidence_of(round)))) == RAW[round]


def test_a_size_without_a_forced_board_has_no_outcomes_on_these():
    parts = {3: {"wait_ratio": Tally(4, 1)}, 4: {}}
    evidence = msgspec.structs.replace(evidence_of("small"), by_trait=parts)
    written = json.loads(msgspec.json.encode(to_lake(evidence)))
    assert list(written["forced"]) == ["3"]
    assert list(read_evidence(from_lake(written, Evidence), "here").by_trait) == [3]


def test_the_words_are_those_of_checkpoints():
    assert list(vocabulary_of(SPACE).tokens) == RECORDED["tokens"]


@rounds
@pytest.mark.parametrize("preset", RECORDED["forms"])
def test_evidence_in_tokens_is_what_checkpoints_read(preset, round):
    modules = EVERYTHING if preset == "everything" else PRESETS[preset]
    view = show_evidence(evidence_of(round), modules, jax.random.key(3))
    tokens, recorded = evidence_tokens(view, space_of(round)), RECORDED["forms"][preset][round]
    digest = hashlib.sha256(json.dumps(tokens, sort_keys=True).encode()).hexdigest()[:16]
    assert recorded in (digest, " ".join(tokens))


@rounds
def test_the_tokens_of_an_answer_are_those_of_checkpoints(round):
    grammar = DeltaGrammar(space_of(round), evidence_of(round).design.strata)
    first, *_ = begun = grammar.allowed([])
    prefixes = [[first], [first, "<hole+1>"], [first, "<hole+1>", "<because_hole>"]]
    assert list(map(list, [begun, *map(grammar.allowed, prefixes)])) == RECORDED["allowed"][round]
