"""Windows of levels: what they draw, how edits move them, what the guard leaves of them, and who is told."""

import json
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.engineer import DesignSpace, Engineer, Environment, Knob, Problem, Verdict
from lakewright.engineer.delta import derive_delta, edit_design, make_edit, summarize_delta
from lakewright.engineer.delta_parsing import read_answer
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.evidence import Evidence, EvidenceSettings, evidence_text, evidence_tokens
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.space import normalize_rows
from lakewright.engineer.space_checks import check_design
from lakewright.engineer.teachers import ask_about, make_teacher
from lakewright.experiments.environments.lake import lake_space
from tests.support.refusals import refused

DIGITS = Knob(name="digits", low=1, high=9, step=1, reach=2, whole=True)
SPACE = DesignSpace(
    ("short", "long"),
    (DIGITS, Knob(name="noise", low=0, high=1, step=0.1, reach=0.2), Knob(name="carry", trait=True)),
)


class Numbers(Environment):
    """Problems that say their level."""

    space = SPACE

    def make(self, cell, rng):
        return Problem(f"{cell.stratum} {cell['digits']} {cell['noise']:.3f} {rng.random()}", "x")

    def judge(self, problem, answer):
        return Verdict(True, 1.0) if answer == "x" else Verdict(False, 0.0, "wrong")


def row(**changes):
    return {"share": 0.5, "digits": 3, "noise": 0.5, "carry": 0.5} | changes


def design(**changes):
    return SPACE.design({"short": row(**changes), "long": row()})


def seen(of):
    return Evidence(design=of, outcomes={}, round=0, rounds=4)


def test_a_window_draws_all_its_values_alike():
    found = Counter(problem.cell["digits"] for problem in Numbers().draw(design(digits=2, digits_high=6), 200, seed=1))
    assert {level: found[level] for level in (2, 4, 5, 6)} == dict.fromkeys((2, 4, 5, 6), 20)
    assert found[3] == 120  # those of the stratum without a window, too


def test_a_level_that_is_not_whole_is_drawn_a_step_apart():
    shares = SPACE.cells(design(noise=0.2, noise_high=0.6, carry=1.0))
    mine = {cell.values[1]: share for cell, share in shares.items() if cell.stratum == "short"}
    assert list(mine) == [0.2, 0.3, 0.4, 0.5, 0.6]
    assert sum(mine.values()) == pytest.approx(0.5)


def test_wide_windows_are_spread_over_few_problems():
    wide = DesignSpace(("all",), [Knob(name=name, low=0, high=1000, whole=True) for name in "abc"])
    ends = {name: value for letter in "abc" for name, value in ((letter, 0), (f"{letter}_high", 1000))}
    cells = [cell.values for cell in wide.cells(wide.design({"all": {"share": 1.0, **ends}}))]
    assert len(cells) == 64
    assert {(0, 0, 0), (1000, 1000, 1000), (333, 667, 0)} <= set(cells)


def test_a_window_of_width_0_is_a_value_and_a_design_without_windows_has_none_in_its_file():
    closed = design(digits=3, digits_high=3)
    assert closed == design()
    assert "digits_high" not in msgspec.json.encode(closed).decode()
    wide = msgspec.json.decode(msgspec.json.encode(design(digits_high=5)), type=Design)
    assert wide.strata["short"]["digits_high"] == 5
    assert wide != design()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"digits_high": 2}, ["short.digits_high", "2", "3 to 9"]),
        ({"digits_high": 10}, ["short.digits_high", "10", "3 to 9"]),
        ({"digits_high": 4.5}, ["short.digits_high", 4.5, "whole number"]),
        ({"carry_high": 0.7}, ["short.carry_high"]),
        ({"share_high": 0.7}, ["short.share_high"]),
    ],
)
def test_a_window_that_is_none_is_refused(changes, said):
    with refused(*said):
        design(**changes)


def test_the_lake_draws_single_hole_ratios():
    space = lake_space()
    start = {"data_ratio": 1.0, "hole_ratio": 0.1, "hole_ratio_high": 0.3, "wait_ratio": 0.5}
    with refused("sizes.5.hole_ratio_high"):
        check_design(Design({5: start}, given={"agents": 2}), space)


def test_a_knob_cannot_have_the_name_of_an_upper_end():
    with refused("digits_high", "window=False"):
        DesignSpace(("a",), (DIGITS, Knob(name="digits_high")))
    single = msgspec.structs.replace(DIGITS, window=False)
    assert DesignSpace(("a",), (single, Knob(name="digits_high"))).uniform().strata["a"]["digits_high"] == 0.5


def test_at_most_six_levels_have_windows():
    space = DesignSpace(("all",), [Knob(name=name) for name in "abcdefg"])
    ends = {name: value for letter in "abcdefg" for name, value in ((letter, 0.1), (f"{letter}_high", 0.9))}
    with refused("strata.all: 7", "g_high"):
        space.design({"all": {"share": 1.0, **ends}})
    environment = Numbers()
    environment.space = space
    opened = Delta({"all": make_edit(space, "wide", {f"{letter}_high": 0.1 for letter in "abcdefg"})})
    assert project_delta(space.uniform(), opened, environment, GuardSettings()).status == "refused"


def windows(knob):
    values = st.integers(1, 9) if knob.whole else st.integers(0, 10).map(lambda tenths: tenths / 10)
    return st.tuples(values, values).map(sorted)


@st.composite
def designs(draw):
    rows = {}
    for stratum in SPACE.strata:
        rows[stratum] = row(carry=draw(st.sampled_from([0.0, 0.3, 1.0])))
        for knob in SPACE.knobs[:2]:
            low, high = draw(windows(knob))
            rows[stratum] |= {knob.name: low, knob.top: high}
    return SPACE.design(rows)


@given(designs(), designs())
def test_a_difference_leads_from_one_window_to_another_and_back(old, new):
    delta = derive_delta(old, new.strata, "there", SPACE)
    assert normalize_rows(edit_design(old, delta, SPACE), SPACE) == new.strata
    back = derive_delta(new, old.strata, "back", SPACE)
    assert normalize_rows(edit_design(new, back, SPACE), SPACE) == old.strata


@given(designs(), st.dictionaries(st.sampled_from(["digits", "digits_high", "noise", "noise_high"]), st.floats(-9, 9)))
def test_the_guard_keeps_both_ends_legal_and_within_reach(old, changes):
    delta = Delta({"short": make_edit(SPACE, "any", changes)})
    found = project_delta(old, delta, Numbers(), GuardSettings()).design
    check_design(found, SPACE)
    for knob in SPACE.knobs[:2]:
        for name in (knob.name, knob.top):
            after, before = (one.strata["short"].get(name, one.strata["short"][knob.name]) for one in (found, old))
            assert abs(after - before) <= knob.reach + 1e-6


def test_an_edit_of_a_level_moves_its_window_and_one_of_the_upper_end_widens_it():
    old = design(digits=2, digits_high=4)
    delta = Delta({"short": make_edit(SPACE, "more", {"digits": 1, "digits_high": 2})})
    assert edit_design(old, delta, SPACE)["short"] == row(digits=3, digits_high=7)
    assert summarize_delta(delta, SPACE) == "short digits +1, digits up to +2 (more)"
    verdict = project_delta(old, delta, Numbers(), GuardSettings())
    assert verdict.design.strata["short"]["digits_high"] == 6
    assert "strata.short.digits_high: proposed 7, applied 6" in verdict.reasons


def test_a_teacher_of_single_values_closes_or_moves_a_window():
    wide = design(digits=2, digits_high=6)
    static = make_teacher("static").propose(seen(wide), wide, SPACE, make_key(0)).delta
    assert "digits_high" not in edit_design(wide, static, SPACE)["short"]
    random = make_teacher("random").propose(seen(wide), wide, SPACE, make_key(3)).delta
    moved = edit_design(wide, random, SPACE)["short"]
    assert moved["digits_high"] - moved["digits"] == 4


def test_words_and_tokens_tell_windows_and_old_prompts_stay():
    plain, wide = design(digits=4), design(digits=2, digits_high=6)
    assert "short: share 0.5, digits 2 to 6, noise 0.5, carry 0.5" in evidence_text(seen(wide), SPACE)
    assert evidence_tokens(seen(wide), SPACE) == evidence_tokens(seen(plain), SPACE)  # which have the middle

    def ask(of):
        asked = ask_about(seen(of), of, SPACE, EvidenceSettings(), make_key(0))
        return asked.messages[1]["content"] + json.dumps(asked.schema)

    assert "digits_high" in ask(wide)
    assert "_high" not in ask(plain)


def test_an_answer_may_open_a_window():
    delta, _ = read_answer('{"edits": {"short": {"digits_high": 2, "reason": "both"}}}', SPACE)
    assert edit_design(design(), delta, SPACE)["short"] == row(digits_high=5)
    with refused("carry_high"):
        read_answer('{"edits": {"short": {"carry_high": 0.2, "reason": "both"}}}', SPACE)


def test_the_teacher_gain_draws_the_levels_that_gain_nearly_as_much():
    environment = Numbers()

    def decide(**options):
        engineer = Engineer(environment, "gain", seed=0, options=options)
        problems = engineer.draw(64)
        answers = [["x" if problem.cell["digits"] + turn < 7 else "" for turn in range(4)] for problem in problems]
        engineer.observe(environment.groups(problems, answers))
        return engineer.redesign().design.strata.values()

    assert not any("digits_high" in row for row in decide())
    assert any(row["digits"] < 5 < row.get("digits_high", 0) for row in decide(near=0.6))
