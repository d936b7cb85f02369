"""Teachers that follow a plan of their own: a fixed config, a random one, schedules from easy to hard."""

import itertools
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.engineer import DesignSpace, Engineer, Knob
from lakewright.engineer.tally import Tally
from lakewright.engineer.teachers import Tools, check_teacher, make_teacher
from lakewright.engineer.teachers.controls import MatchedRandomTeacher, RandomTeacher
from lakewright.engineer.teachers.e2h import CosineTeacher, GaussianTeacher
from lakewright.experiments.environments.lake import Lake
from tests.support.refusals import refused
from tests.support.samples.curricula import CONFIG, asked_for, made, propose, shares
from tests.support.samples.evidence import SPACE, decode_first, design, everything

COLUMNS = [column.name for column in SPACE.columns]


def test_the_static_teacher_asks_for_its_config_whatever_is_seen():
    sizes = asked_for(propose(make_teacher("static", options={"hole_ratio": 0.4, "wait_ratio": 0.75, "tilt": 2.0})))
    assert shares(sizes) == pytest.approx([9 / 61, 16 / 61, 36 / 61], abs=1e-6)
    assert {(cell.hole_ratio, cell.wait_ratio) for cell in sizes.values()} == {(0.4, 0.75)}
    for hole, wait, tilt in itertools.product((0.1, 0.25, 0.4), (0.25, 0.5, 0.75), (0.0, 2.0)):  # of docs/teachers.md
        make_teacher("static", options={"hole_ratio": hole, "wait_ratio": wait, "tilt": tilt})


def test_domain_randomisation_fills_its_box():
    drawn = [asked_for(propose(made("domain_randomisation"), seed=seed)) for seed in range(200)]
    rows = np.array([[getattr(sizes[size], name) for name in COLUMNS] for sizes in drawn for size in CONFIG.sizes])
    assert np.abs(rows.mean(axis=0) - (1 / 3, 0.25, 0.5)).max() < 0.05
    assert (rows.min(axis=0) < (0.02, 0.02, 0.02)).all()
    assert (rows.max(axis=0) > (0.9, 0.48, 0.98)).all()


@given(st.integers(0, 2**31))
@settings(max_examples=30)
def test_matched_random_edits_as_many_sizes_by_as_much_as_the_other_teacher(seed):
    asking, _ = jax.random.split(jax.random.key(seed))
    other = RandomTeacher().propose(everything(CONFIG, {}), design(CONFIG), SPACE, asking)
    own = propose(MatchedRandomTeacher(RandomTeacher()), seed=seed)
    assert own.delta is not None
    assert other.delta is not None
    assert len(own.delta.edits) == len(other.delta.edits)
    for name in COLUMNS:
        theirs, ours = ([abs(edit.changes[name]) for edit in x.delta.edits.values()] for x in (other, own))
        assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("teacher", ["e2h_cosine", "e2h_gaussian", CosineTeacher(), "matched_random"])
def test_an_engineer_with_a_schedule_must_know_how_many_redesigns_there_will_be(teacher):
    options = {"match": "e2h_cosine"} if teacher == "matched_random" else None
    with refused("engineer: teacher", "schedule", "rounds"):
        Engineer(Lake(), teacher, options=options)
    engineer = Engineer(Lake(), teacher, options=options, rounds=9)
    engineer.redesign({size: Tally(4, 2) for size in engineer.design.strata})
    assert engineer.design.version == 1


def test_matched_random_passes_on_what_the_other_could_not_answer():
    teacher = make_teacher("matched_random", Tools(decode=lambda *_: ["<end>", "<end>"]), {"match": "self"})
    proposal = propose(teacher)
    assert proposal.delta is None
    assert proposal.error
    assert proposal.tokens == 2


def test_matched_random_keeps_the_summary_of_the_other_and_what_did_not_fit():
    teacher = make_teacher("matched_random", Tools(decode=decode_first), {"match": "self"})
    asked, proposal = propose(made("self")), propose(teacher)
    assert asked.summary
    assert (proposal.summary, proposal.cut) == (asked.summary, asked.cut)


@pytest.mark.parametrize(
    ("progress", "expected"), [(0.0, [3 / 6, 2 / 6, 1 / 6]), (0.5, [1 / 3, 1 / 3, 1 / 3]), (1.0, [1 / 6, 2 / 6, 3 / 6])]
)
def test_the_cosine_schedule_turns_from_small_to_large(progress, expected):
    assert CosineTeacher().schedule_shares(progress, 3) == pytest.approx(expected)


def test_the_gaussian_schedule_is_centred_on_a_rank_above_a_floor():
    side = math.exp(-2.0)  # (i - mu)^2 / (2 s^2) = 1 / 0.5, with mu = 0.25^0.5 x 2 = 1
    bells = [side / (1 + 2 * side), 1 / (1 + 2 * side)]
    expected = [1 / 6 + bells[0] / 2, 1 / 6 + bells[1] / 2, 1 / 6 + bells[0] / 2]
    assert GaussianTeacher().schedule_shares(0.25, 3) == pytest.approx(expected)


@pytest.mark.parametrize("schedule", [CosineTeacher, GaussianTeacher])
def test_easy_to_hard_ends_with_the_largest_size_and_leaves_hole_and_wait(schedule):
    sizes = asked_for(propose(schedule(), round=1))  # the last of three stages is to come
    assert max(sizes, key=lambda size: sizes[size].data_ratio) == 6
    assert all((cell.hole_ratio, cell.wait_ratio) == (0.25, 0.5) for cell in sizes.values())


@pytest.mark.parametrize(
    "options",
    [{"hole_ratio": 0.3}, {"wait_ratio": 0.1}, {"values": {"size": 3.0}}],
    ids=lambda options: next(iter(options)),
)
def test_a_value_of_a_knob_that_the_space_does_not_have_is_refused(options):
    space = DesignSpace(("one", "two"), (Knob(name="terms", low=1, high=9),), failures=("wrong",))
    with refused("teacher static:", "give values of terms"):
        check_teacher("static", options, space)
    assert check_teacher("static", {"values": {"terms": 3.0}, "tilt": 1.0}, space)
    with refused("teacher static:", "terms", 10):
        check_teacher("static", {"terms": 10}, space)
    with refused("teacher_options", "terms", "some"):
        check_teacher("static", {"terms": "some"}, space)
    assert check_teacher("static", {"terms": 3, "tilt": 1}, space) == {"terms": 3.0, "tilt": 1.0}
    assert check_teacher("static", {}, space) == {}
