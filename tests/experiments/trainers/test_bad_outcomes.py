"""Outcomes that are left out, with a line that has the reason, and failures that are dropped from those that count."""

import json

import pytest

from lakewright.engineer.number_limits import MOST_REWARD
from lakewright.experiments.cli.engineer_folder import status_text
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from tests.experiments.trainers.test_outcomes import GOOD, append, make_answers, read
from tests.support.refusals import assert_names
from tests.support.samples.engineer_folders import ADDITION, begin_engineer

ANY = {"fewest_answers": 1}  # one is enough for a decision


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", settings=ANY)


BAD = {
    "an unknown stratum": {"stratum": "9"},
    "an unknown version": {"version": 7},
    "knobs that do not fit": {"knobs": {"terms": 2, "colour": 1}},
    "an unknown grade": {"grades": ["best"]},
    "a number that is not finite": {"reward": float("nan")},
    "a wrong field 'tokens'": {"tokens": -1},
    "a reward over 1e+100": {"reward": -1e160},
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_outcome_is_left_out_and_said_in_one_line(folder, reason):
    append(folder, GOOD, {**GOOD, **BAD[reason], "group": "bad"}, {**GOOD, "group": "last"})
    report = folder.next()
    assert (report.counts.answers, report.counts.left_out) == (2, {reason: 1})
    assert report.complaint.startswith(f"{folder.path}/outcomes.jsonl: 1 line left out: 1 with {reason} (line 2: ")
    assert report.complaint.endswith("correct the program that writes them")
    assert "\n" not in report.complaint
    assert len((folder.path / "outcomes.jsonl").read_bytes().splitlines()) == 3
    assert not folder.next().complaint


def test_one_example_of_a_wrong_field_does_not_hide_another(folder):
    append(folder, {**GOOD, "tokens": -1}, {**GOOD, "tokens": "no"}, {**GOOD, "split": "test"}, GOOD)
    report = folder.next()
    assert report.counts.left_out == {"a wrong field 'tokens'": 2, "a wrong field 'split'": 1}
    assert_names(report.complaint, "3 lines", "'tokens' (line 1:", "'split' (line 3:")


def test_lines_that_do_not_count_are_counted_for_good(folder):
    append(folder, GOOD, {**GOOD, "tokens": -1}, {**GOOD, "group": "b", "valid": False, "failure": "bored"})
    for pending in (2, 0):
        assert folder.status().pending == pending
        assert folder.status().faults == {
            "left_out": {"a wrong field 'tokens'": 1},
            "dropped": {"a failure that is not declared": 1},
            "undrawn": {},
        }
        folder.next()
    append(folder, {**GOOD, "tokens": -1})
    assert folder.status().faults["left_out"] == {"a wrong field 'tokens'": 2}
    assert "of all lines, 2 left out: 2 with a wrong field 'tokens'" in status_text(folder.status())


def test_a_few_answers_decide_nothing_yet(tmp_path):
    folder = begin_engineer(tmp_path / "e")
    append(folder, *[{**GOOD, "answer": number} for number in range(3)])
    for _ in range(2):
        report = folder.next(step=1)
        assert (report.new, report.version, report.counts.answers) == (False, 0, 3)
        assert_names(report.line, "3 answers since version 0", "fewest_answers is 4")
    append(folder, {**GOOD, "answer": 3})
    assert folder.next(step=1).line.endswith("; from 4 answers")
    assert folder.status().pending == 0


def test_all_held_out_answers_are_enough_and_earlier_folders_decide_on_any(tmp_path):
    folder = begin_engineer(tmp_path / "e", held_out=2)
    recorder = OutcomeRecorder(folder.path)
    recorder.record(folder.held_out()[0], ["?"], split="held_out", group="before training")
    assert "1 answer since" in folder.next().line
    recorder.record(folder.held_out()[1], ["?"], split="held_out", group="before training", first=1)
    assert folder.next().line.endswith("; from 2 answers")
    raw = json.loads((folder.path / "engineer.json").read_text())
    del raw["settings"]["fewest_answers"], raw["parts"]
    (folder.path / "engineer.json").write_text(json.dumps(raw))
    (folder.path / "SHA256SUMS").unlink()
    older = EngineerFolder(folder.path)
    append(older, GOOD)
    assert older.next().line.endswith("; from 1 answer")


@pytest.mark.parametrize(
    ("knobs", "difference"),
    [
        ({"terms": 3, "carry": True}, "terms 3, but the design has 2"),
        ({"terms": 2, "carry": False}, "carry false, but its share is 1"),
    ],
)
def test_a_trainer_that_ignores_the_design_is_noticed(tmp_path, knobs, difference):
    always = {"1": {"share": 0.0, "terms": 2, "carry": 0}, "2": {"share": 1.0, "terms": 2, "carry": 1}}
    folder = begin_engineer(tmp_path / "e", settings=ANY, design=load_environment(ADDITION).space.design(always))
    append(
        folder,
        *[{**GOOD, "group": f"{number}", "knobs": knobs} for number in range(3)],
        {**GOOD, "knobs": {"terms": 2, "carry": 1}},
    )
    append(folder, {**GOOD, "split": "held_out", "knobs": knobs, "group": "other"})
    assert difference in folder.status().complaint
    report = folder.next()
    assert report.counts.answers == 4, "they count"
    assert_names(report.complaint, "3 lines", "version 0 does not draw (line 1: ", difference, "design.json")
    assert folder.status().faults["undrawn"] == {"problems that version 0 does not draw": 3}
    append(folder, {**GOOD, "stratum": "1", "version": 0, "group": "z"})
    assert "stratum 1, which has no share" in folder.next().complaint


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ({"stratum": "22"}, "(line 1: 22; choose from 1, 2, 3, 4)"),
        ({"version": 7}, "(line 1: 7; the newest is 0)"),
        ({"grades": ["best"]}, "(line 1: 'best'; choose from none)"),
        ({"given": {"agents": 2}}, "(line 1: 'agents'; write none)"),
    ],
)
def test_the_line_about_an_unknown_name_has_the_choices(folder, change, remedy):
    append(folder, {**GOOD, **change})
    report = folder.next()
    assert remedy in report.complaint
    assert sum(report.counts.left_out.values()) == 1, "counted also if there is nothing to decide on"


def test_an_answer_counts_by_its_verdict_though_its_failure_is_not_declared(folder):
    """Else, after a failure was renamed, all answers that are left would be valid."""
    for split in ("train", "held_out"):
        some = make_answers(split, [1, 0, 0], split=split)
        some[0]["failure"], some[1]["failure"], some[2]["failure"] = "wrong", "bored", ""
        append(folder, *some, *make_answers(f"{split} 2", [0], split=split))
    group, _ = read(folder).groups
    assert (group.completions, group.valid, group.failures) == (3, 1, {})
    assert folder.status().outcomes["0"]["2"] == (4, 1)
    report = folder.next()
    assert (report.counts.answers, report.counts.held_out, report.counts.left_out) == (4, 4, {})
    assert "6 lines counted without a failure: 2 with a failure though they are valid (line 1: 'wrong'), 4 with " in (
        report.complaint
    )
    assert "(line 2: 'bored'); failures of invalid answers are no_number, wrong" in report.complaint


def test_a_line_that_is_no_json_is_shown_without_its_end(folder):
    (folder.path / "outcomes.jsonl").write_text("garbage\n")
    assert "with no JSON (line 1: garbage); " in folder.next().complaint


@pytest.mark.parametrize(
    "change",
    [
        *[{"knobs": {"terms": 9, "carry": True}}, {"knobs": {"terms": 2}}, {"knobs": {"terms": 2, "carry": "yes"}}],
        *[{"stratum": 2.5}, {"reward": "high"}, {"valid": "yes"}, {"group": ""}, {"split": "test"}, {"version": -1}],
        *[{"reward": 10**400}, {"given": {"agents": 2}}, {"answer": -1}],
        *[{"version": 10**30}, {"tokens": 10**30}, {"answer": 2**60}, {"reward": 1e101}, {"knobs": {"terms": 1e300}}],
    ],
    ids=str,
)
def test_other_bad_outcomes_are_left_out_too(folder, change):
    append(folder, {**GOOD, **change})
    found = read(folder)
    assert (len(found.answers), len(found.faults)) == (0, 1)


@pytest.mark.parametrize("digits", [5_000, 30])
@pytest.mark.parametrize("quote", ['"', ""])
def test_a_stratum_of_any_number_of_digits_is_left_out(folder, digits, quote):
    line = json.dumps({**GOOD, "stratum": "?"}).replace('"?"', quote + "9" * digits + quote)
    append(folder, GOOD, line.encode() + b"\n", {**GOOD, "group": "last"})
    report = folder.next()
    assert (report.counts.answers, sum(report.counts.left_out.values())) == (2, 1)
    assert "outcomes.jsonl: 1 line left out: " in report.complaint


def test_rewards_too_large_to_square_stop_no_later_decision(folder):
    append(folder, *({**GOOD, "reward": sign * 1e160} for sign in (1, -1)), {**GOOD, "group": "sound"})
    assert folder.next().counts.left_out == {"a reward over 1e+100": 2}
    append(folder, *({**GOOD, "reward": sign * MOST_REWARD, "group": "most"} for sign in (1, -1)))
    assert folder.next().counts.answers == 2
    append(folder, {**GOOD, "group": "later"})
    assert folder.next().counts.answers == 1
