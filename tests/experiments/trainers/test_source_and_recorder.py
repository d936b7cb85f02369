"""The source pins its problems, the recorder appends: what both promise, what they refuse, and what they cost."""

import copy
import errno
import json
import os
import time

import pytest

from lakewright.engineer import Verdict
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, guess, record_some

STEP = 0.5  # seconds


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", held_out=4)


def lines_of(folder):
    return [json.loads(line) for line in (folder.path / "outcomes.jsonl").read_text().splitlines()]


def test_a_place_gives_the_same_problem_again_in_any_process(folder):
    source = ProblemSource(folder.path)
    first = source.take(6)
    record_some(folder, first)
    assert folder.next().version == 1
    other = ProblemSource(folder.path)
    assert [source[place] for place in range(6)] == first == other.take(6)
    assert (source[6].version, other[6]) == (1, source[6])
    assert copy.copy(source).take(1) == source.take(1) == [source[6]]


def test_another_seed_has_other_problems_and_the_held_out_ones_have_their_own(folder):
    prompts = [{problem.prompt for problem in ProblemSource(folder.path, seed).take(20)} for seed in (0, 1)]
    assert not prompts[0] & prompts[1]
    held_out = folder.setup.held_out_seed
    with refused("seed", f"{held_out}", "held-out"):
        ProblemSource(folder.path, held_out)
    with refused("place", "'a'"):
        ProblemSource(folder.path)["a"]
    with refused("place", -1):
        ProblemSource(folder.path)[-1]


def test_of_two_pins_of_a_place_the_first_counts_and_torn_ones_none(folder):
    source = ProblemSource(folder.path)
    record_some(folder, source.take(2))
    folder.next()
    with open(folder.path / "pins-0.jsonl", "a") as pins:
        pins.write('{"place": 2, "version": 0}\n{"place": 2, "version": 1}\n{"place": 3')
    assert source[2].version == 0
    assert source[3].version == 1
    assert ProblemSource(folder.path)[3].version == 1


def test_a_recorded_line_is_that_of_the_contract(folder):
    problem = ProblemSource(folder.path)[0]
    verdicts = OutcomeRecorder(folder.path).record(problem, [problem.answer, "?"], tokens=[2, 1], group="g")
    assert [verdict.valid for verdict in verdicts] == [True, False]
    knobs = dict(zip(("terms", "carry"), problem.cell.values, strict=True))
    like = {"version": 0, "key": problem.key, "group": "g", "stratum": problem.cell.stratum, "knobs": knobs}
    assert lines_of(folder) == [
        {**like, "valid": True, "reward": 1.0, "tokens": 2, "answer": 0},
        {**like, "valid": False, "failure": "no_number", "reward": 0.0, "tokens": 1, "answer": 1},
    ]
    assert all(type(line["knobs"]["carry"]) is bool for line in lines_of(folder))


def test_a_reward_of_ones_own_is_recorded_beside_the_verdict(folder):
    problem, recorder = ProblemSource(folder.path)[0], OutcomeRecorder(folder.path)
    recorder.record(problem, [problem.answer, "?"], [0.25, -1])
    recorder.record(problem, [""], [Verdict(valid=True, reward=0.5)], split="held_out", first=3)
    found = [(line["valid"], line["reward"], line["answer"]) for line in lines_of(folder)]
    assert found == [(True, 0.25, 0), (False, -1.0, 1), (True, 0.5, 3)]
    assert lines_of(folder)[2]["split"] == "held_out"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"outcomes": [1.0]}, ["outcomes", "1 for 2 answers"]),
        ({"tokens": 3}, ["tokens is 3", "tuple"]),
        ({"tokens": [1]}, ["tokens", "1 for 2 answers"]),
        ({"tokens": [1, -2]}, ["tokens", -2, "whole number"]),
        ({"tokens": [1, 10**30]}, ["tokens", "10000000000000000000"]),
        ({"tokens": [1, 2.5]}, ["tokens", 2.5, "whole number"]),
        ({"first": -1}, ["first", -1, "whole number"]),
        ({"split": "test"}, ["split", "'test'", "train, held_out"]),
        ({"outcomes": [1.0, float("nan")]}, ["outcomes: reward 1", "nan"]),
        ({"outcomes": [1e160, -1e160]}, ["outcomes: reward 0", "1e+160", "1e+100"]),
        ({"outcomes": [1, 10**400]}, ["outcomes: reward 1", 1000]),
        ({"outcomes": [Verdict(True, -1e160)] * 2}, ["outcomes: reward 0", "-1e+160"]),
        ({"outcomes": [Verdict(False, 0.0, "bored")] * 2}, ["outcomes: answer 0: failure 'bored'"]),
        ({"outcomes": [Verdict(True, 1.0, grades=("best",))] * 2}, ["outcomes: answer 0: grade 'best'"]),
        ({"outcomes": [Verdict("yes", 1.0)] * 2}, ["outcomes: answer 0: valid", "'yes'"]),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_nothing_is_written(folder, given, complaint):
    recorder = OutcomeRecorder(folder.path)
    with refused(*complaint):
        recorder.record(ProblemSource(folder.path)[0], ["1", "2"], **given)
    assert lines_of(folder) == []


def test_a_single_text_is_refused_and_not_read_letter_by_letter(folder):
    recorder, problem = OutcomeRecorder(folder.path), ProblemSource(folder.path)[0]
    for answers in ("12", 12, None):
        with refused("answers", repr(answers)):
            recorder.record(problem, answers)
    with refused("problem", "'1+1='", "Problem"):
        recorder.record("1+1=", ["2"])
    assert lines_of(folder) == []


@pytest.mark.parametrize("room", [0, 10])
def test_a_full_disk_is_an_error_and_what_fits_later_counts(folder, monkeypatch, room):
    source, recorder, write = ProblemSource(folder.path), OutcomeRecorder(folder.path), os.write
    problem = source[0]

    def fill(descriptor, data):
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:room])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill)
        for doing in (lambda: recorder.record(problem, guess(problem)), lambda: source[1]):
            with pytest.raises(OSError, match=r"No space left on device: '.*\.jsonl'"):
                doing()
    recorder.record(problem, guess(problem))
    assert source[1].version == 0
    assert folder.next().counts.answers == 4


def test_drawing_and_recording_cost_less_than_a_hundredth_of_a_step(folder):
    source, recorder = ProblemSource(folder.path), OutcomeRecorder(folder.path)
    recorder.record(source.take(1)[0], ["?"])
    begun = time.process_time()
    for _ in range(5):  # steps of eight problems with eight answers each
        for problem in source.take(8):
            recorder.record(problem, ["?"] * 8, tokens=[3] * 8)
    assert (time.process_time() - begun) / 5 < 0.01 * STEP
