"""Outcomes as they are read: each counts once, for its own version and cell; others are left out, with a line."""

import json
import subprocess
import sys
import time
import tracemalloc

import pytest

from lakewright.experiments.trainers.appending import LONGEST
from lakewright.experiments.trainers.outcomes import OutcomeReader, make_groups, read_lines
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.processes.commands import HOUSE, surroundings
from tests.support.samples.engineer_folders import begin_engineer, guess, record_some

GOOD = {"version": 0, "key": "k", "group": "g", "stratum": "2", "knobs": {"terms": 2, "carry": True}, "valid": True}
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
    current = folder.files.read_version(0)
    return OutcomeReader(folder.path / "outcomes.jsonl", folder.space, current.design, newest).read(0)


def test_lines_of_the_contract_count_one_each(folder):
    append(folder, *[{**GOOD, "group": f"g{number // 4}"} for number in range(12)])
    found = read(folder)
    groups = make_groups(found.answers)
    assert (len(found.answers), len(groups), found.faults) == (12, 3, [])
    assert {(group.board, group.completions, group.valid, group.version, str(group.cell)) for group in groups} == {
        ("k", 4, 4, 0, "2 2 1")
    }


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
    groups = make_groups(read(folder, newest=1).answers)
    assert [group.version for group in groups] == [0] * 16 + [1]
    assert [group.cell for group in groups] == [problem.cell for problem in (*early, *late, source[16])]
    assert folder.next().counts.groups == 9
    counted = {
        version: sum(total for total, _ in strata.values()) for version, strata in folder.status().outcomes.items()
    }
    assert counted == {"0": 64, "1": 4}


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


BAD = {
    "an unknown stratum": {"stratum": "9"},
    "an unknown version": {"version": 7},
    "knobs that do not fit": {"knobs": {"terms": 2, "colour": 1}},
    "an unknown failure": {"valid": False, "failure": "bored"},
    "an unknown grade": {"grades": ["best"]},
    "a number that is not finite": {"reward": float("nan")},
    "a wrong field": {"tokens": -1},
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_outcome_is_left_out_and_said_in_one_line(folder, reason):
    append(folder, GOOD, {**GOOD, **BAD[reason], "group": "bad"}, {**GOOD, "group": "last"})
    report = folder.next()
    assert (report.counts.answers, report.counts.left_out) == (2, {reason: 1})
    assert report.complaint.startswith(f"{folder.path}/outcomes.jsonl: 1 line left out: 1 with {reason} (line 2: ")
    assert report.complaint.endswith("correct what writes them")
    assert "\n" not in report.complaint
    assert len((folder.path / "outcomes.jsonl").read_bytes().splitlines()) == 3
    assert not folder.next().complaint


def test_a_line_that_is_no_json_is_shown_without_its_end(folder):
    (folder.path / "outcomes.jsonl").write_text("garbage\n")
    assert "with no JSON (line 1: garbage); " in folder.next().complaint


def test_the_status_counts_outcomes_in_the_order_of_the_strata(folder):
    append(folder, *({**GOOD, "stratum": stratum, "group": stratum} for stratum in "4213"))
    assert list(folder.status().outcomes["0"]) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    "change",
    [
        *[{"knobs": {"terms": 9, "carry": True}}, {"knobs": {"terms": 2}}, {"knobs": {"terms": 2, "carry": "yes"}}],
        *[{"stratum": 2.5}, {"reward": "high"}, {"valid": "yes"}, {"group": ""}, {"split": "test"}, {"version": -1}],
        *[{"reward": 10**400}, {"given": {"agents": 2}}, {"answer": -1}, {"failure": "wrong"}],
    ],
    ids=str,
)
def test_other_bad_outcomes_are_left_out_too(folder, change):
    append(folder, {**GOOD, **change})
    found = read(folder)
    assert (len(found.answers), len(found.faults)) == (0, 1)


def test_garbage_is_left_out(folder):
    append(folder, bytes(range(256)) * 3, b"\n\n[]\nnull\n\xff\xfe\n", b"[" * 100_000 + b"\n", GOOD)
    found = read(folder)
    assert len(found.answers) == 1
    assert {fault.reason for fault in found.faults} <= {"no JSON", "a wrong field"}


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
    assert all(group.completions == 4 for group in make_groups(found.answers))
