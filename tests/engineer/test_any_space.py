"""Every part of the engineer serves spaces unlike the lake's: names, ragged limits, no knobs, many knobs."""

import functools
import time

import msgspec
import numpy as np
import pytest
import sklearn.mixture  # noqa: F401 - a teacher loads it when it has seen enough, and its time is measured

from lakewright.engineer.cells import Cell, Knob
from lakewright.engineer.delta import edit_design
from lakewright.engineer.delta_parsing import encode_delta, read_answer
from lakewright.engineer.design import Delta
from lakewright.engineer.difficulty import (
    DifficultySettings,
    compute_features,
    count_features,
    estimate_diminishing_worth,
    estimate_worth,
)
from lakewright.engineer.evidence import (
    DeltaGrammar,
    Evidence,
    EvidenceSettings,
    Modules,
    delta_tokens,
    evidence_text,
    evidence_tokens,
    read_tokens,
    show_evidence,
    vocabulary_of,
)
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.lessons import LessonSettings, _draw_round, synthetic_examples
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.space import DesignSpace, normalize_rows
from lakewright.engineer.space_checks import check_design
from lakewright.engineer.steps import negotiate, stretch_delta
from lakewright.engineer.teachers import TEACHERS, RulesTeacher, Tools, check_teacher, make_teacher
from lakewright.engineer.trial import (
    CellTrial,
    ProposalReward,
    TrialSettings,
    choose_rival,
    estimate_lead,
    problems_to_try,
    reward_proposals,
    shortlist_designs,
    sum_up_trial,
)
from tests.support.environments.odd_spaces import BARE, RAGGED, SPACES, WIDE, Odd, key_of, know_everything
from tests.support.refusals import refused

GUARD = GuardSettings(floor=0.05)
ALONE = [name for name in TEACHERS if name not in ("base", "endpoint")]
each_space = pytest.mark.parametrize("name", SPACES)


@functools.cache
def known(name: str, round: int = 1) -> Evidence:
    return know_everything(Odd(SPACES[name]), SPACES[name].uniform(), round)


def answer_first(prompt, allowed, seed=None):
    """A policy that takes the first token that is allowed; a group of two where it is given a seed."""
    tokens = []
    while choices := allowed(tokens):
        tokens.append(choices[0])
    return tokens if seed is None else [tokens] * 2


@each_space
def test_the_evidence_is_said_in_text_and_in_tokens(name):
    space, evidence = SPACES[name], known(name)
    text, tokens = evidence_text(evidence, space), evidence_tokens(evidence, space)
    assert all(str(stratum) in text for stratum in space.strata)
    assert all(knob.name in text for knob in space.knobs)
    assert len(tokens) < 2000
    nothing = show_evidence(
        evidence, Modules(failures=False, guideline=False, history=False, bookkeeping=False), key_of(0)
    )
    assert len(evidence_tokens(nothing, space)) < len(tokens)


@each_space
def test_an_answer_comes_back_from_tokens_and_from_json(name):
    space, design = SPACES[name], SPACES[name].uniform()
    tokens = answer_first([], DeltaGrammar(space, design.strata).allowed)
    delta = read_tokens(tokens, space)
    assert delta_tokens(delta, space) == tokens
    assert read_answer(encode_delta(delta), space)[0] == delta


@each_space
def test_features_and_forecast_are_finite_and_of_the_cells_asked_for(name):
    space, evidence = SPACES[name], known(name)
    cells = list(space.cells(evidence.design))
    assert compute_features(cells, space).shape == (len(cells), count_features(space))
    forecast = evidence.forecast
    assert [found.cell for found in forecast.grid] == space.forecast_cells(evidence.design)
    assert all(0 < found.p < 1 and np.isfinite(found.deviation) for found in forecast.grid)
    assert all(space.allows(found.cell) for found in forecast.grid)
    mix = space.cells(evidence.design)
    assert estimate_worth(forecast.model, mix, space).mean > 0
    assert estimate_diminishing_worth(forecast, mix, 2.0, space) > 0


def test_strata_without_an_order_have_effects_of_their_own_and_no_axis():
    cells = [Cell(stratum, (2,)) for stratum in RAGGED.strata]
    found = compute_features(cells, RAGGED)
    assert found.shape == (3, 6), "1, the level, its square, and one for each stratum"
    assert (found[:, :3] == found[0, :3]).all(), "the smooth part knows no stratum"
    assert (found[:, 3:] == 2 * np.eye(3)).all()


def test_a_ladder_of_its_own_ends_where_its_limits_say():
    assert [cell.values for cell in RAGGED.grid(["word-game"])] == [(0,), (1,), (2,), (3,)]
    assert [cell.values for cell in RAGGED.grid(["logic/1"])] == [(2,)]
    assert {cell.values for cell in RAGGED.forecast_cells(RAGGED.uniform()) if cell.stratum == "logic/1"} == {(2,)}


@pytest.mark.parametrize("schedule", ["cosine", "gaussian"])
def test_a_schedule_for_strata_without_an_order_is_refused_when_the_engineer_is_made(schedule):
    name = f"e2h_{schedule}"
    for teacher, options in ((name, {}), ("matched_random", {"match": name})):
        with refused(f"teacher: {name}", "in order"):
            Engineer(Odd(RAGGED), teacher, options=options)
        with refused(f"teacher: {name}", "in order"):
            check_teacher(teacher, options, RAGGED)
    with refused(f"teacher: {name}", "in order"):
        Engineer(Odd(RAGGED), make_teacher(name))


@pytest.mark.parametrize("teacher", ALONE)
@each_space
def test_a_teacher_proposes_a_design_in_under_a_second_and_carries_its_state(name, teacher):
    space, environment = SPACES[name], Odd(SPACES[name])
    tools = Tools(decode=answer_first, sample=answer_first)
    if teacher.startswith("e2h") and not space.ranked:
        with refused(teacher, "in order"):
            check_teacher(teacher, {}, space)
        return
    design, one, two = space.uniform(), make_teacher(teacher, tools), make_teacher(teacher, tools)
    for round in (1, 2):
        evidence = msgspec.structs.replace(known(name, round), design=design)
        begun = time.process_time()
        proposal = one.propose(evidence, design, space, key_of(round))
        spent = time.process_time() - begun
        assert spent < 1 or round == 1, f"{teacher} takes {spent:.1f} s"  # the first loads libraries
        assert proposal.delta is not None, proposal.error
        assert "board" not in proposal.answer, "that is a word of the lake"
        assert two.propose(evidence, design, space, key_of(round)) == proposal
        state = msgspec.json.decode(msgspec.json.encode(one.state_dict()))
        two = make_teacher(teacher, tools)
        two.load_state_dict(state)
        assert two.state_dict() == one.state_dict()
        verdict = project_delta(design, proposal.delta, environment, GUARD)
        assert verdict.status != "refused", verdict.reasons
        design = verdict.design
        check_design(design, space)


@each_space
def test_the_guard_keeps_any_change_in_its_limits(name):
    space = SPACES[name]
    design = space.uniform()
    rng = np.random.default_rng(0)
    for _ in range(20):
        wild = {
            stratum: {column.name: float(rng.uniform(-20, 20)) for column in space.columns} | {space.share.name: 1.0}
            for stratum in space.strata
        }
        changes = {
            stratum: {column: value - design.strata[stratum][column] for column, value in row.items()}
            for stratum, row in wild.items()
        }
        answer = msgspec.json.encode({"edits": {str(one): {"reason": "x"} for one in changes}})
        delta = read_answer(answer, space)[0]
        delta = Delta({one: msgspec.structs.replace(edit, changes=changes[one]) for one, edit in delta.edits.items()})
        verdict = project_delta(design, delta, Odd(space), GUARD)
        check_design(verdict.design, space)
        for knob in space.knobs:
            reach = max(1, knob.reach) if knob.whole else knob.reach
            for stratum, row in verdict.design.strata.items():
                assert abs(row[knob.name] - design.strata[stratum][knob.name]) <= reach + 1e-6


def test_the_guard_finds_what_can_be_drawn_among_many_knobs_at_once():
    class Narrow(Odd):
        def drawable(self, cell):
            return cell.values[0] == 4

    design = WIDE.uniform()
    answer = {"edits": {"0": {"reason": "x", **{f"whole_{number}": 1 for number in range(8)}}}}
    delta = read_answer(msgspec.json.encode(answer), WIDE)[0]
    begun = time.process_time()
    verdict = project_delta(design, delta, Narrow(WIDE), GUARD)
    assert time.process_time() - begun < 1
    row = verdict.design.strata[0]
    assert row["whole_0"] == 4 and row["whole_7"] == 5, verdict.reasons  # noqa: PT018


@each_space
def test_a_trial_compares_designs_of_any_space(name):
    space, evidence, environment = SPACES[name], known(name), Odd(SPACES[name])
    design, model = evidence.design, evidence.forecast.model
    deltas = [RulesTeacher(0.1, 0.2).make_delta(evidence, design, space), Delta({})]
    designs = [project_delta(design, stretch_delta(delta, 0.5, space), environment, GUARD).design for delta in deltas]
    mixes = [environment.mix(one) for one in (design, *designs)]
    settings = TrialSettings(share=0, boards=40)
    counts = problems_to_try(mixes, settings)
    rng = np.random.default_rng(1)
    trials = {cell: CellTrial(cell, 4, rng.integers(0, 5, count).tolist()) for cell, count in counts.items()}
    signals = {cell: trial.signal() for cell, trial in trials.items()}
    values = {cell: trial.values("learnability") for cell, trial in trials.items()}
    tried = [sum_up_trial(one, mix, signals) for one, mix in zip((design, *designs), mixes, strict=True)]
    assert all(0 <= one.score <= 0.34 for one in tried)
    order = shortlist_designs(model, mixes[0], mixes[1:], 2, space)
    leads = [estimate_lead(mixes[1 + place], mixes[0], values, 4, worth) for place, worth in order]
    assert all(np.isfinite(lead.mean) and 0 <= lead.better <= 1 for lead in leads)
    assert choose_rival(leads, 0, 0) in (None, 0)
    verdicts = [project_delta(design, delta, environment, GUARD) for delta in deltas]
    earned = reward_proposals(verdicts, lambda one: 0.0, ProposalReward(), space)
    assert len(earned) == 2


@each_space
def test_the_engineer_is_asked_until_a_proposal_passes(name):
    space, evidence = SPACES[name], known(name)
    attempts = negotiate(make_teacher("rules"), evidence, evidence.design, Odd(space), key_of(3), GUARD, proposals=3)
    assert attempts[-1].verdict.status != "refused"


@each_space
def test_a_model_is_fitted_with_effects_of_each_stratum_where_that_is_asked_for(name):
    space = SPACES[name]
    assert count_features(space, 1.0) >= count_features(space)
    assert DifficultySettings(model="regression", by_size=1.0).by_size == 1.0


@pytest.mark.parametrize(
    ("rule", "preset"), [("proportional", "v6"), ("rules", "rl_details"), ("forecast", "forecast")]
)
@each_space
def test_lessons_are_of_designs_of_the_space_and_can_be_read(name, rule, preset):
    space = SPACES[name]
    lessons = LessonSettings(rule=rule).build_lessons("learnability", EvidenceSettings(preset))
    examples = synthetic_examples(10, space.uniform(), space, 4, np.random.default_rng(0), lessons)
    assert all(read_tokens(answer, space).edits.keys() <= set(space.strata) for _, answer in examples)
    assert all(set(prompt) <= set(vocabulary_of(space).tokens) for prompt, _ in examples)


def test_lessons_keep_to_the_limits_of_a_stratum():
    for seed in range(10):
        design = _draw_round(RAGGED.uniform(), RAGGED, np.random.default_rng(seed)).design
        check_design(design, RAGGED)
        assert design.strata["logic/1"]["level"] == 2


def test_a_cell_of_large_numbers_comes_back_from_its_name():
    for cell in (Cell("a/b", (12345678, 0.123456, True)), Cell(3, (1234567.25,), (7,)), Cell("x", ())):
        assert Cell.from_name(str(cell)) == cell


def test_a_rule_stops_at_the_limits_of_a_stratum():
    evidence = known("ragged")
    design = RAGGED.design(
        {one: {"share": 1 / 3, "level": RAGGED.limits(one, RAGGED.knobs[0])[1]} for one in RAGGED.strata}
    )
    easy = {one: msgspec.structs.replace(tally, valid=tally.problems) for one, tally in evidence.outcomes.items()}
    delta = RulesTeacher().make_delta(msgspec.structs.replace(evidence, design=design, outcomes=easy), design, RAGGED)
    rows = normalize_rows(edit_design(design, delta, RAGGED), RAGGED)
    assert {one: row["level"] for one, row in rows.items()} == {"sums": 10, "word-game": 3, "logic/1": 2}


def test_a_space_of_one_stratum_without_knobs_has_one_cell():
    assert BARE.grid(["task"]) == [Cell("task", ())]
    assert BARE.cells(BARE.uniform()) == {Cell("task", ()): 1.0}


def test_a_grid_of_many_knobs_stays_small():
    assert len(WIDE.grid(WIDE.strata)) <= 4096
    space = DesignSpace(["a"], [Knob(name=f"k{number}") for number in range(16)])
    assert len(space.grid(["a"])) <= 4096
