"""Each teacher keeps its rule, and none fails because of what a model answers."""

import jax
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import BoardOutcomes
from lakewright.engineer.delta_parsing import read_answer
from lakewright.engineer.design import Delta, Design, Edit
from lakewright.engineer.evidence import DeltaGrammar, Evidence, read_tokens, vocabulary_of
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.proposal import Proposal, Teacher
from lakewright.engineer.teachers import TEACHERS, RulesTeacher, Tools, make_teacher
from lakewright.experiments.environments.lake import design_of
from tests.support.refusals import refused
from tests.support.samples.evidence import ROOMY, SPACE, decode_first, everything, sample_first

DATA = {4: 0.3, 5: 0.4, 8: 0.3}
DESIGN = design_of(EnvConfig({size: SizeConfig(share, 0.2, 0.5) for size, share in DATA.items()}))
WORDS = vocabulary_of(SPACE)


def outcomes(valid: int, **failures: int) -> BoardOutcomes:
    return BoardOutcomes(100, valid, valid, valid, failures, 0, 0)


def evidence(seen: dict[int, BoardOutcomes], design: Design = DESIGN) -> Evidence:
    return everything(design, seen)


def propose(teacher: Teacher, seen: dict[int, BoardOutcomes], design: Design = DESIGN, seed: int = 0) -> Proposal:
    return teacher.propose(evidence(seen, design), design, SPACE, jax.random.key(seed))


def rules(seen: dict[int, BoardOutcomes], design: Design = DESIGN) -> Delta:
    delta = propose(make_teacher("rules"), seen, design).delta
    assert delta is not None
    return delta


def changes(edit: Edit) -> tuple[float, ...]:
    """Of data, holes and waits."""
    return tuple(edit.changes[column.name] for column in SPACE.columns)


def asking(decode) -> Teacher:
    return make_teacher("self", Tools(decode=decode))


def test_the_fixed_teacher_edits_nothing():
    assert propose(make_teacher("fixed"), {5: outcomes(0)}).delta == Delta({})


@given(st.integers(0, 2**32))
def test_the_random_teacher_edits_in_steps_inside_the_ranges(seed):
    design = design_of(EnvConfig({4: SizeConfig(0.0, 0.0, 1.0), 5: SizeConfig(1.0, 0.5, 0.0)}))
    delta = propose(make_teacher("random"), {}, design, seed).delta
    assert delta is not None
    assert 1 <= len(delta.edits) <= 2
    for size, edit in delta.edits.items():
        assert edit.changes.keys() == WORDS.steps.keys()
        assert any(edit.changes.values())
        for name, change in edit.changes.items():
            assert change / WORDS.steps[name] == pytest.approx(round(change / WORDS.steps[name]))
            top = 0.5 if name == "hole_ratio" else 1
            assert -1e-9 <= design.strata[size][name] + change <= top + 1e-9


def test_the_random_teacher_depends_on_its_key_alone():
    assert propose(make_teacher("random"), {}, seed=1) == propose(make_teacher("random"), {}, seed=1)
    assert propose(make_teacher("random"), {}, seed=1) != propose(make_teacher("random"), {}, seed=2)


def test_where_the_policy_succeeds_the_rules_make_boards_harder():
    edit = rules({5: outcomes(75)}).edits[5]
    assert changes(edit) == (-0.05, 0.05, 0.1)
    assert edit.reason == WORDS.reasons["<because_too_easy>"]


def test_where_the_policy_fails_the_rules_make_boards_easier_and_name_the_failure():
    edit = rules({5: outcomes(20, hole=30, swap_conflict=50)}).edits[5]
    assert changes(edit) == (-0.05, -0.05, -0.1)
    assert edit.reason == WORDS.reasons["<because_swap_conflict>"]


def test_far_beyond_a_threshold_the_rules_take_two_steps():
    delta = rules({5: outcomes(95), 8: outcomes(5)})
    assert changes(delta.edits[5])[1:] == (0.1, 0.2)
    assert changes(delta.edits[8])[1:] == (-0.1, -0.2)
    assert delta.edits[8].reason == WORDS.reasons["<because_too_hard>"]


@pytest.mark.parametrize("valid", [30, 50, 70])
def test_at_the_frontier_the_rules_give_more_data(valid):
    edit = rules({5: outcomes(valid)}).edits[5]
    assert changes(edit) == (0.05, 0.0, 0.0)
    assert edit.reason == WORDS.reasons["<because_frontier>"]


def test_the_rule_that_seeks_regret_makes_boards_harder_until_most_plans_fail():
    known = evidence({4: outcomes(50), 5: outcomes(30), 8: outcomes(5)})
    edits = RulesTeacher.for_objective("regret").make_delta(known, DESIGN, SPACE).edits
    assert edits[4].changes["hole_ratio"] > 0
    assert edits[5].changes["data_ratio"] > 0, "a frontier: more of these boards"
    assert edits[8].changes["hole_ratio"] < 0
    usual = RulesTeacher().make_delta(known, DESIGN, SPACE)
    assert RulesTeacher.for_objective("learnability").make_delta(known, DESIGN, SPACE) == usual


def test_the_rules_leave_alone_what_has_no_evidence_and_what_is_at_its_limit():
    design = design_of(EnvConfig({4: SizeConfig(0.5, 0.5, 1.0), 5: SizeConfig(0.5, 0.0, 0.05)}))
    delta = rules({4: outcomes(90), 5: BoardOutcomes(0, 0, 0, 0, {}, 0, 0), 9: outcomes(90)}, design)
    assert list(delta.edits) == [4]
    assert changes(delta.edits[4]) == (-0.05, 0.0, 0.0)
    assert rules({}) == Delta({})


@given(st.integers(0, 2**32))
def test_the_guard_refuses_no_unprompted_teacher(seed):
    rng = np.random.default_rng(seed)
    seen = {size: outcomes(int(rng.integers(0, 101))) for size in DESIGN.strata}
    for name in ("fixed", "random", "rules"):
        proposal = propose(make_teacher(name), seen, seed=seed)
        assert proposal.delta is not None
        assert read_answer(proposal.answer, SPACE) == (proposal.delta, "")
        assert project_delta(DESIGN, proposal.delta, ROOMY, GuardSettings(floor=0.05)).status != "refused"


def test_the_self_teacher_asks_under_the_grammar_of_the_sizes():
    asked = []

    def decode(prompt, allowed):
        asked.append(prompt)
        assert allowed([]) == DeltaGrammar(SPACE, DESIGN.strata).allowed([])
        return decode_first(prompt, allowed)

    proposal = propose(asking(decode), {5: outcomes(50)})
    assert asked[0][-1] == "<delta>"
    assert proposal.prompt == " ".join(asked[0])
    assert proposal.delta == read_tokens(proposal.answer.split(" "), SPACE)
    assert set(proposal.delta.edits) == {4, 5, 8}
    assert proposal.error == ""


@given(st.lists(st.sampled_from(WORDS.tokens) | st.text(max_size=4) | st.none() | st.integers(), max_size=12))
def test_whatever_tokens_come_back_the_self_teacher_proposes(tokens):
    proposal = propose(asking(lambda prompt, allowed: tokens), {5: outcomes(50)})
    assert (proposal.delta is None) == bool(proposal.error)
    assert len(proposal.error.splitlines()) <= 1


def test_an_answer_that_is_no_delta_is_kept_with_its_error():
    proposal = propose(asking(lambda prompt, allowed: ["<size_5>", "<size_5>"]), {})
    assert proposal.answer == "<size_5> <size_5>"
    assert "token 1 is '<size_5>'" in proposal.error


@pytest.mark.parametrize("name", TEACHERS)
def test_every_teacher_is_made_by_name_and_carries_its_state(name):
    teacher = make_teacher(name, Tools(decode=decode_first, sample=sample_first))
    teacher.load_state_dict(teacher.state_dict())
    proposal = propose(teacher, {5: outcomes(50)})
    assert msgspec.json.decode(msgspec.json.encode(proposal), type=Proposal) == proposal


def test_an_unknown_teacher_is_refused_and_the_choices_named():
    with refused("'oracle'"):
        make_teacher("oracle")


def test_the_self_teacher_needs_a_decode_function():
    with refused("tools to ask a model are missing"):
        make_teacher("self")
