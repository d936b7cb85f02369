"""The index of outcomes: a decision reads only what is new, and counts the same as if it had read everything."""

import json
import os
import random

import pytest

from lakewright.experiments.trainers import outcomes
from lakewright.experiments.trainers.outcome_index import EMPTY, Index, Names, digest_name, read_index, write_index
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, record_some, state_of

ANSWERS = 4  # of a group


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e")


def count_lines_read(monkeypatch):
    """A list that grows by the number of each line that is read."""
    read, found = outcomes.read_lines, []

    def note_lines(path, begin=0):
        for end, text in read(path, begin):
            found.append(end)
            yield end, text

    monkeypatch.setattr(outcomes, "read_lines", note_lines)
    return found


def test_a_decision_reads_the_new_lines_only(folder, monkeypatch):
    source, read = ProblemSource(folder.path), count_lines_read(monkeypatch)
    for problems in (50, 3, 2):
        read.clear()
        record_some(folder, source.take(problems))
        assert folder.next().counts.answers == len(read) == problems * ANSWERS
    read.clear()
    assert folder.next().line.startswith("no outcomes")
    assert sum(total for strata in folder.status().outcomes.values() for total, _ in strata.values()) == 55 * ANSWERS
    assert not read


def test_a_pipe_in_the_place_of_outcomes_that_were_read_is_refused_at_once(folder):
    record_some(folder, ProblemSource(folder.path).take(5))
    folder.next()
    (folder.path / "outcomes.jsonl").unlink()
    os.mkfifo(folder.path / "outcomes.jsonl")
    for doing in (folder.status, folder.next):
        with refused("outcomes.jsonl", "pipe"):
            doing()


def test_without_the_index_all_lines_are_read_and_it_is_made_again(folder, monkeypatch):
    source, read = ProblemSource(folder.path), count_lines_read(monkeypatch)
    record_some(folder, source.take(5))
    folder.next()
    folder.files.index_path.unlink()
    record_some(folder, source.take(2))
    read.clear()
    assert (folder.next().counts.answers, len(read)) == (2 * ANSWERS, 7 * ANSWERS)
    assert read_index(folder.files.index_path, EMPTY).lines == 7 * ANSWERS


def test_the_index_of_other_outcomes_is_not_used(folder, tmp_path):
    other = begin_engineer(tmp_path / "other")
    for one, seed in ((folder, 0), (other, 1)):
        record_some(one, ProblemSource(one.path, seed).take(5))
        one.next()
    expected = folder.status()
    folder.files.index_path.write_bytes(other.files.index_path.read_bytes())
    assert folder.status() == expected


@pytest.mark.parametrize("length", [0, 31, 32, 40, -1])
def test_an_index_that_was_cut_is_as_none(folder, length):
    record_some(folder, ProblemSource(folder.path).take(5))
    folder.next()
    path = folder.files.index_path
    assert read_index(path, EMPTY) != EMPTY
    path.write_bytes(path.read_bytes()[:length])
    assert read_index(path, EMPTY) == EMPTY


def test_an_index_of_a_later_format_is_as_none(tmp_path):
    write_index(tmp_path / "index", Index(format=EMPTY.format + 1, offset=3))
    assert read_index(tmp_path / "index", EMPTY) == EMPTY


def test_names_are_found_after_they_were_saved_however_they_end():
    texts = [digest_name(bytes([number]))[:15] + bytes([number % 3]) for number in range(200)]
    first = Names()
    assert all(first.add(text) for text in texts[:100])
    second = Names(first.encode())
    assert [second.add(text) for text in texts] == [False] * 100 + [True] * 100
    assert second.encode() == b"".join(sorted(texts))


def make_lines(rng, newest, number):
    """The lines of a writer's group: of the newest version or an older one, with numbers or without, some twice."""
    group, version = f"group {number}", rng.randint(0, newest)
    shared = {"version": version, "key": f"key {number}", "group": group, "stratum": rng.choice("123"), "reward": 0.5}
    shared |= {"knobs": {"terms": 2, "carry": True}, "split": rng.choice(["train", "train", "held_out"])}
    lines = []
    for answer in range(ANSWERS):
        valid = rng.random() < 0.5
        line = {**shared, "valid": valid, "failure": "" if valid else "wrong"}
        lines.append(json.dumps({**line, "answer": answer} if number % 2 else line).encode() + b"\n")
    return lines


def write_history(rng, versions, number):
    """The bytes that writers append between two decisions, and how many answers they are: some lines come again later,
    some are torn by a writer that was killed, and the last may have no end yet."""
    groups = [make_lines(rng, versions, 100 * number + place) for place in range(6)]
    lines = [line for group in groups for line in group]
    torn = rng.choice(lines)[: rng.randint(1, 30)]
    again = [line for group in rng.sample(groups, 2) for line in group]  # as by a trainer that resumes
    return b"".join(lines) + torn + b"".join(again), len(lines)


def test_whatever_became_of_the_index_each_answer_counts_once_and_versions_are_the_same(tmp_path):
    rng = random.Random(5)
    names = ("kept", "removed", "damaged", "one decision late")
    folders = {name: begin_engineer(tmp_path / name) for name in names}
    waiting, before, written, counted = b"", b"", 0, dict.fromkeys(folders, 0)
    for number in range(6):
        version = folders["kept"].files.newest()
        data, count = write_history(rng, version, number)
        data, written = waiting + data, written + count
        cut = len(data) if number == 5 else rng.randint(len(data) // 2, len(data))  # within a line, mostly
        data, waiting = data[:cut], data[cut:]
        for name, folder in folders.items():
            with open(folder.path / "outcomes.jsonl", "ab") as file:
                file.write(data)
            path = folder.files.index_path
            if number and name == "removed":
                path.unlink()
            elif number and name == "damaged":
                index = bytearray(path.read_bytes())
                index[rng.randrange(len(index))] ^= 1 << rng.randrange(8)
                path.write_bytes(index)
            elif number and name == "one decision late":  # a kill came between the version and the index
                current = path.read_bytes()
                path.write_bytes(before) if before else path.unlink()
                before = current
            counts = folder.next().counts
            counted[name] += counts.answers + counts.held_out
    assert counted == dict.fromkeys(folders, written)
    states = [state_of(folder.path) for folder in folders.values()]
    assert states[0]["status"]["version"] > 2
    assert all(state == states[0] for state in states)
