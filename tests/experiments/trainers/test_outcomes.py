"""Outcomes as they are read: each counts once, for its own version and cell; others are left out, with a line."""

import json
import os
import subprocess
import sys
import time
import tracemalloc
from types import SimpleNamespace

import msgspec
import pytest

from docs.examples.addition import Addition
from lakewright.engineer import Cell, DesignSpace, Knob
from lakewright.experiments.trainers import answer_groups
from lakewright.experiments.trainers.answer_groups import Answer
from lakewright.experiments.trainers.outcome_lines import LONGEST, read_lines
from lakewright.experiments.trainers.outcomes import LeftOutLine, OutcomeReader
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.processes.commands import HOUSE, surroundings
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, guess, record_some

GOOD = {"version": 0, "key": "k", "group": "g", "stratum": "2", "knobs": {"terms": 3, "carry": True}, "valid": True}
GOOD |= {"failure": "", "reward": 1.0, "tokens": 17, "split": "train"}


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e")


def append(folder, *lines):
    """Appends lines: outcomes, or bytes as they are."""
    with open(folder.path / "outcomes.jsonl", "ab") as file:
        for line in lines:
            file.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")


def read(folder, newest=0):
    """All answers that count, the faults of other lines, and the groups."""
    design, groups = folder.files.read_version(0).design, []
    path = folder.path / "outcomes.jsonl"
    found = list(OutcomeReader(path, folder.space, design, newest).read_answers())
    OutcomeReader(path, folder.space, design, newest).read(0, groups.extend)
    answers, faults = ([one for one in found if isinstance(one, kind)] for kind in (Answer, LeftOutLine))
    return SimpleNamespace(answers=answers, faults=faults, groups=groups)


def test_lines_of_the_contract_count_one_each(folder):
    append(folder, *[{**GOOD, "group": f"g{number // 4}"} for number in range(12)])
    found = read(folder)
    groups = found.groups
    assert (len(found.answers), len(groups), found.faults) == (12, 3, [])
    assert {(group.key, group.completions, group.valid, group.version, str(group.cell)) for group in groups} == {
        ("k", 4, 4, 0, "2 3 1")
    }


def test_groups_have_the_lengths_of_their_answers_of_which_one_may_be_empty_unless_none_is_told(folder):
    for name, lengths in (("g0", (17, 17)), ("g1", (17, 0)), ("g2", (0, 0))):
        append(folder, *[{**GOOD, "group": name, "tokens": tokens} for tokens in lengths])
    assert [group.tokens for group in read(folder).groups] == [34, 17, msgspec.UNSET]


def test_lines_of_other_tools_mean_the_same_as_ours(folder):
    """pandas writes whole numbers beside missing ones as floats, and null or NaN for what is missing."""
    flat = {**GOOD, "version": 0.0, "tokens": 17.0, "answer": 0.0, "valid": 1.0, "failure": None, "grades": None}
    whole = {**GOOD, "stratum": 2.0, "knobs": {"terms": 3.0, "carry": 1.0}, "answer": 1.0, "split": None}
    spread = {**GOOD, "failure": float("nan"), "answer": 2}
    first = b"\xef\xbb\xbf" + json.dumps(flat).encode() + b"\r\n"
    append(folder, first, whole, spread, {**GOOD, "answer": 3}, {**GOOD, "tokens": 1.5}, {**GOOD, "valid": 2})
    found = read(folder)
    assert [fault.reason for fault in found.faults] == ["a wrong field 'tokens'", "a wrong field 'valid'"], found.faults
    assert [answer.line.answer for answer in found.answers] == [0, 1, 2, 3]
    assert {str(answer.cell) for answer in found.answers} == {"2 3 1"}
    assert [group.completions for group in found.groups] == [4]
    assert [answer.line.tokens for answer in found.answers] == [17] * 4


def test_a_line_written_twice_counts_once(folder):
    record_some(folder, ProblemSource(folder.path).take(3))
    append(folder, *[{**GOOD, "group": f"g{number // 4}"} for number in range(8)])
    whole = (folder.path / "outcomes.jsonl").read_bytes()
    assert len(read(folder).answers) == 20
    append(folder, whole, *whole.splitlines(keepends=True)[3:7])
    assert len(read(folder).answers) == 20
    assert folder.next().counts.answers == 20
    append(folder, whole)
    assert folder.next().line.startswith("no outcomes")


def test_a_late_line_counts_for_its_own_version_and_cell(folder):
    source, recorder = ProblemSource(folder.path), OutcomeRecorder(folder.path)
    early, late = source.take(8), source.take(8)
    for problem in early:
        recorder.record(problem, guess(problem))
    assert folder.next().version == 1
    for problem in late:
        recorder.record(problem, guess(problem))
    assert source[16].version == 1
    recorder.record(source[16], guess(source[16]))
    groups = read(folder, newest=1).groups
    assert [group.version for group in groups] == [0] * 16 + [1]
    assert [group.cell for group in groups] == [problem.cell for problem in (*early, *late, source[16])]
    assert folder.next().counts.groups == 9
    counted = {
        version: sum(total for total, _ in strata.values()) for version, strata in folder.status().outcomes.items()
    }
    assert counted == {"0": 64, "1": 4}


def test_groups_that_began_first_are_closed_when_too_many_are_open(folder, monkeypatch):
    monkeypatch.setattr(answer_groups, "MOST_OPEN", 4)
    names = [f"g{number // 2}" for number in range(20)]
    names[1], names[-1] = "late", "g0"  # a line of the first group comes last
    append(folder, *({**GOOD, "group": name, "answer": place} for place, name in enumerate(names)))
    groups = read(folder).groups
    assert [group.completions for group in groups] == [1, 1, *[2] * 8, 1, 1]
    counts = folder.next().counts
    assert (counts.answers, counts.groups) == (20, 12)


PEAK = """
import resource, sys
from pathlib import Path
from lakewright.experiments.trainers.folder import EngineerFolder
small, large = map(EngineerFolder, sys.argv[1:])
most = []
for folder in (small, large):
    pending = folder.status().pending
    assert folder.next().counts.answers == pending
    most.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
print(pending, most[1] - most[0])
"""


@pytest.mark.deep
def test_a_hundred_megabytes_of_outcomes_take_little_memory(tmp_path):
    lines = [json.dumps({**GOOD, "group": "{}", "failure": "", "answer": place}) for place in range(8)]
    text = "\n".join([*lines, ""]).replace("{}", "{0}").replace('{"', '{{"').replace("}", "}}").replace("{0}}", "{0}")
    for name, number in (("small", 16), ("large", 100_000_000 // len(text))):
        folder = begin_engineer(tmp_path / name, teacher="difficulty")
        with open(folder.path / "outcomes.jsonl", "w") as file:
            file.writelines(text.format(f"group {place}") for place in range(number))
    found = subprocess.run(
        [sys.executable, "-c", PEAK, tmp_path / "small", tmp_path / "large"],
        capture_output=True,
        text=True,
        cwd=HOUSE,
        env=surroundings(),
        check=True,
    )
    pending, megabytes = map(int, found.stdout.split())
    assert pending > 400_000
    assert megabytes < 100


def make_answers(group, rewards, tokens=10, **fields):
    """The lines of a group."""
    told = [{"valid": reward == 1, "failure": "" if reward == 1 else "wrong", "reward": reward} for reward in rewards]
    return [{**GOOD, **fields, "group": group, "answer": at, "tokens": tokens, **one} for at, one in enumerate(told)]


def test_the_status_says_how_much_the_answers_to_each_stratum_teach(folder):
    append(folder, *make_answers("a", [1, 1]), *make_answers("b", [1, 0]), *make_answers("c", [0, 0], tokens=40))
    append(folder, *make_answers("d", [0, 0.5], stratum="3"), *make_answers("e", [1], stratum="3"))
    append(folder, *make_answers("f", [1, 0], split="held_out"), make_answers("late", [0])[0])
    expected = folder.status().strata
    assert list(expected) == ["0"]
    assert msgspec.to_builtins(expected["0"]["2"]) == {
        "answers": 7,
        "groups": 3,
        "valid": 3 / 7,
        **dict.fromkeys(("signal", "solved", "learnable", "out_of_reach"), 1 / 3),
        "wasted": 100 / 120,
    }
    assert (expected["0"]["3"].groups, expected["0"]["3"].signal) == (1, 1.0)
    folder.next()
    assert folder.status().strata == expected, "now from the index"
    append(folder, make_answers("late", [0, 1])[1])
    found = folder.status().strata["0"]["2"]
    assert (found.groups, found.signal) == (4, 0.5), "a group goes on after it was indexed"


def test_a_grader_that_refuses_a_format_is_told_from_a_hard_task(folder):
    append(folder, *(line for n in range(20) for line in make_answers(f"easy {n}", [1, 0], stratum="1")))
    append(folder, *(line for n in range(20) for line in make_answers(f"good {n}", [0, 1], stratum="3")))
    assert folder.status().suspects == []
    refused = [{**line, "failure": "no_number"} for n in range(20) for line in make_answers(f"two {n}", [0, 0])]
    append(folder, *refused)
    (line,) = folder.status().suspects
    assert line.startswith("stratum 2: all 40 answers fail as no_number; a broken grader looks like a hard task: look")
    append(folder, *(line for n in range(20) for line in make_answers(f"mixed {n}", [0, 0])))
    (line,) = folder.status().suspects
    assert "stratum 2: none of 80 answers is valid, while harder ones succeed: 3 50%" in line
    append(folder, *make_answers("good", [0, 1]))
    assert folder.status().suspects == []


def test_a_torn_line_waits_for_its_end_and_harms_no_other(folder):
    line = json.dumps(GOOD).encode()
    append(folder, GOOD, line[:40])
    assert (len(read(folder).answers), read(folder).faults) == (1, [])
    append(folder, line[40:] + b"\n")
    assert len(read(folder).answers) == 2
    append(folder, line[:40], {**GOOD, "group": "after"})  # its writer was killed, and another went on
    found = read(folder)
    assert [answer.line.group for answer in found.answers] == ["g", "g", "after"]
    assert [fault.reason for fault in found.faults] == ["no JSON"]


def test_the_status_counts_outcomes_in_the_order_of_the_strata(folder):
    append(folder, *({**GOOD, "stratum": stratum, "group": stratum} for stratum in "4213"))
    assert list(folder.status().outcomes["0"]) == ["1", "2", "3", "4"]


def test_a_second_training_with_the_same_group_names_is_counted_and_said(folder):
    source, recorder = ProblemSource(folder.path), OutcomeRecorder(folder.path)
    for training in range(2):
        for place in range(4):
            recorder.record(source[place], guess(source[place]), group=f"step {place}")
        report = folder.next()
        assert (report.new, report.complaint != "") == (training == 0, training == 1)
    assert report.line.startswith("no outcomes since version 1")
    assert "16 lines with the group, key and number of an earlier answer (line 17: group 'step 0')" in report.complaint
    assert report.complaint.endswith("a new round or training needs other groups")
    assert folder.status().complaint == report.complaint


class Counting(Addition):
    """Sums whose number of terms is called a version."""

    space = DesignSpace([1, 2], [Knob(name="version", low=1, high=4, whole=True)], failures=("no_number", "wrong"))


def test_a_knob_that_is_named_like_the_first_field_of_a_line_divides_no_torn_line(tmp_path):
    space, path = Counting.space, tmp_path / "outcomes.jsonl"
    good = {**GOOD, "stratum": 2, "knobs": {"version": 3}}
    line = json.dumps(good, separators=(",", ":")).encode()
    path.write_bytes(line[:-20] + line[:30] + line + b"\n" + line[:-20] + b"\n")
    found = list(OutcomeReader(path, space, space.uniform(), 0).read_answers())
    assert [type(one).__name__ for one in found] == ["LeftOutLine", "Answer", "LeftOutLine"]
    assert found[1].cell == Cell(2, (3,))


def test_what_is_appended_while_outcomes_are_read_waits_for_the_next_time(folder):
    append(folder, *({**GOOD, "group": f"g{number}"} for number in range(100)))
    seen = 0
    for end, _ in read_lines(folder.path / "outcomes.jsonl"):
        seen, written = seen + 1, end
        append(folder, GOOD, GOOD)  # a writer that never stops, and is faster
    assert (seen, written < (folder.path / "outcomes.jsonl").stat().st_size) == (100, True)


@pytest.mark.parametrize("name", ["outcomes.jsonl", "pins-0.jsonl"])
def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(folder, name):
    (folder.path / name).unlink(missing_ok=True)
    os.mkfifo(folder.path / name)
    doings = [lambda: OutcomeRecorder(folder.path), folder.next, folder.status]
    for doing in doings if name.startswith("outcomes") else [lambda: ProblemSource(folder.path)]:
        with refused(name, "pipe"):
            doing()


def test_garbage_is_left_out(folder):
    append(folder, bytes(range(256)) * 3, b"\n\n[]\nnull\n\xff\xfe\n", b"[" * 100_000 + b"\n", GOOD)
    found = read(folder)
    assert len(found.answers) == 1
    assert {fault.reason for fault in found.faults} <= {"no JSON", "a wrong field", "a wrong field 'version'"}


def test_a_line_of_100_megabytes_is_passed_over_piece_by_piece(folder):
    append(folder, GOOD)
    with open(folder.path / "outcomes.jsonl", "r+b") as file:
        file.seek(0, 2)
        begin = file.tell()
        file.truncate(begin + 100_000_000)  # a hole: no disk, and no newline
        file.seek(0, 2)
        file.write(b"\n")
    append(folder, {**GOOD, "group": "last"})
    tracemalloc.start()
    lines = [text if isinstance(text, int) else len(text) for _, text in read_lines(folder.path / "outcomes.jsonl")]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines[1] == 100_000_001
    assert most < 4 * LONGEST
    report = folder.next()
    assert (report.counts.answers, report.counts.left_out) == (2, {"over 1 MB": 1})
    assert "100000001 bytes" in report.complaint


WRITER = """
import sys
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.samples.engineer_folders import guess
path, name = sys.argv[1:]
source, recorder = ProblemSource(path), OutcomeRecorder(path)
print("ready", flush=True)
sys.stdin.readline()
for place in range(60):
    recorder.record(source[place], guess(source[place]), group=f"{name} {place}", tokens=[3] * 4)
"""


@pytest.mark.deep
def test_several_writers_and_a_reader_lose_nothing(folder):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": HOUSE, "env": surroundings()}
    program = [sys.executable, "-c", WRITER, str(folder.path)]
    writers = [subprocess.Popen([*program, name], **pipes) for name in ("one", "two")]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    counted = 0
    while any(writer.poll() is None for writer in writers):
        counted += folder.next().counts.answers
        time.sleep(0.02)
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    counted += folder.next().counts.answers
    found = read(folder, newest=folder.files.newest())
    assert (len(found.answers), found.faults, counted) == (2 * 60 * 4, [], 2 * 60 * 4)
    versions = {}
    for answer in found.answers:
        versions.setdefault(answer.line.group.split()[1], set()).add(answer.line.version)
    assert len(versions) == 60
    assert all(len(each) == 1 for each in versions.values()), "both drew the same problem, from one version"
    assert all(group.completions == 4 for group in found.groups)
