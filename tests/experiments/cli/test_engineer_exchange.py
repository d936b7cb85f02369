"""Problems and answers as lines of files, so that a trainer in any language needs no Python; a version for people."""

import json

import pytest

from lakewright.experiments.trainers.source import ProblemSource
from tests.support.processes.commands import assert_refused, lakewright
from tests.support.samples.engineer_folders import begin_engineer, read_groups, record_some


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", held_out=2)


def run(capsys, *words):
    code, out, lines = lakewright(capsys, "engineer", *words)
    assert code == 0, lines
    return out


def read_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def write_answers(path, problems, **changes):
    """A file of the lines of problems, each with a right and a wrong answer."""
    lines = [{**one, "answers": [str(eval(one["prompt"][:-1])), "?"], **changes} for one in problems]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_round_without_python(folder, tmp_path, capsys):
    out, rewards = tmp_path / "problems.jsonl", tmp_path / "rewards.jsonl"
    run(capsys, "draw", folder.path, "--count", 4, "--out", out)
    problems = read_lines(out.read_text())
    source = ProblemSource(folder.path)
    assert [one["prompt"] for one in problems] == [source[place].prompt for place in range(4)]
    assert [one["place"] for one in problems] == [0, 1, 2, 3]
    answers = write_answers(tmp_path / "answers.jsonl", problems, tokens=[2, 1])
    for _ in range(2):  # as after a kill
        assert run(capsys, "record", folder.path, answers, "--out", rewards) == "8 answers recorded, 4 valid\n"
    earned = {
        "place": 3,
        "split": "train",
        "rewards": [1.0, 0.0],
        "valid": [True, False],
        "failures": ["", "no_number"],
    }
    assert read_lines(rewards.read_text())[3] == earned
    assert [len(lines) for lines in read_groups(folder.path).values()] == [2] * 4, "a line that comes twice counts once"
    assert run(capsys, "next", folder.path).startswith("version 1: ")
    later = read_lines(run(capsys, "draw", folder.path, "--count", 2))
    assert [(one["place"], one["version"]) for one in later] == [(4, 1), (5, 1)]
    assert read_lines(run(capsys, "draw", folder.path, "--first", 0, "--count", 4)) == problems
    others = read_lines(run(capsys, "draw", folder.path, "--seed", -1, "--count", 2))
    run(capsys, "record", folder.path, write_answers(answers, others))
    assert run(capsys, "draw", folder.path, "--count", 0) == ""
    assert folder.status().pending == 4


def test_held_out_problems_are_answered_in_the_same_way(folder, tmp_path, capsys):
    problems = read_lines(run(capsys, "draw", folder.path, "--held-out"))
    assert [one["prompt"] for one in problems] == [problem.prompt for problem in folder.held_out()]
    run(capsys, "record", folder.path, write_answers(tmp_path / "a.jsonl", problems))
    assert (folder.status().held_out, folder.status().complaint) == (4, "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"place": 0}', ["a.jsonl:2", "answers"]),
        ('{"place": 0, "answers": []}', ["a.jsonl:2", "answers"]),
        ('{"place": 0, "answers": "57"}', ["a.jsonl:2", "answers"]),
        ('{"place": 9, "answers": ["57"]}', ["a.jsonl:2", "place 9"]),
        ('{"place": 9, "split": "held_out", "answers": ["57"]}', ["a.jsonl:2", "place is 9", "2 held-out"]),
        ('{"place": 0, "answers": ["57"], "seed": 20260617}', ["seed"]),
        ("[" * 9999, ["a.jsonl:2"]),
        ('{"place": 0, "answers": ["57"], "outcomes": [NaN]}', ["a.jsonl:2"]),
        ('{"place": 0, "answers": ["57"], "outcomes": [1, 0]}', ["a.jsonl:2", "outcomes", "2 for 1"]),
        ('{"place": 0, "answers": ["57"], "tokens": [1, 2]}', ["a.jsonl:2", "tokens"]),
        ('{"place": 0, "answers": ["\\ud800"]}', ["a.jsonl:2"]),
    ],
)
def test_a_bad_line_is_one_line_and_nothing_is_recorded(folder, tmp_path, capsys, line, told):
    problems = read_lines(run(capsys, "draw", folder.path, "--count", 1))
    path = write_answers(tmp_path / "a.jsonl", problems)
    path.write_text(path.read_text() + line)
    assert_refused(capsys, ("engineer", "record", folder.path, path), *told)
    assert read_groups(folder.path) == {}


def test_no_file_of_the_folder_is_replaced(folder, tmp_path, capsys):
    answers = write_answers(tmp_path / "a.jsonl", read_lines(run(capsys, "draw", folder.path, "--count", 1)))
    outcomes = folder.path / "outcomes.jsonl"
    for words in (("draw", folder.path), ("record", folder.path, answers)):
        assert_refused(capsys, ("engineer", *words, "--out", outcomes), "outcomes.jsonl", "choose another --out")


def test_a_version_is_shown_with_what_led_to_it(folder, capsys):
    record_some(folder, ProblemSource(folder.path).take(8))
    line = folder.next().line.partition("; from")[0]
    shown = run(capsys, "show", folder.path)
    assert shown.startswith("version 1 by engineer: ")
    assert "## Outcomes" in shown
    assert f"## Decision\n{line}\n1: " in shown
    assert run(capsys, "show", folder.path, "--version", 0) == "version 0 by begin: the first design\n"
    assert json.loads(run(capsys, "show", folder.path, "--json"))["version"] == 1
    assert_refused(capsys, ("engineer", "show", folder.path, "--version", 7), "version is 7", "0 to 1")
    assert_refused(capsys, ("engineer", "replay", folder.path), "holds an engineer", "engineer show")
