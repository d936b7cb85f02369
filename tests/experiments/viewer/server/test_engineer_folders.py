"""An engineer's folder in the viewer: versions, diffs, outcomes, difficulty model, prompts and answers, also live."""

import json
import re

import pytest

from lakewright.core_jax.support import listed, write_json
from lakewright.engineer.teachers import Reply
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.versions import FolderSettings
from tests.support.samples.engineer_folders import begin_engineer, guess, record_some
from tests.support.servers.viewer_client import HOSTILE, client

ANSWER = json.dumps({"edits": {"2": {"share": 0.05, "terms": -1, "carry": 0, "reason": f"why {HOSTILE[:60]}"}}})


def decide(folder, text):
    """Records guesses, and has a policy say `text` and roll proposals out."""

    def roll_out(problems, samples, turn):
        return folder.environment.groups(problems, [guess(problem, samples) for problem in problems]), 7

    source = ProblemSource(folder.path)
    record_some(folder, source.problems(range(20 * folder.status().version, 20 * folder.status().version + 16)))
    return folder.next(roll_out, lambda messages, schema, seed: Reply(text, 11))


@pytest.fixture
def folder(tmp_path):
    settings = FolderSettings(trial=TrialSettings(share=0, boards=4, samples=2))
    return begin_engineer(tmp_path / "shown" / "e", teacher="self", settings=settings)


def read_page(folder, address="/engineer/shown/e"):
    reply = client(folder.path.parent).get(address)
    assert reply.status_code == 200, reply.text[-500:]
    return reply.text


def test_an_engineers_folder_is_one_item_and_no_heap_of_files(folder):
    record_some(folder, ProblemSource(folder.path).take(2))
    first = read_page(folder, "/")
    assert 'href="/engineer/shown/e"' in first
    assert "teacher self; 1 versions" in first
    assert "outcomes.jsonl" not in first


def test_the_page_follows_a_folder_from_its_beginning(folder):
    begun = read_page(folder)
    assert "Version 0, the first" in begun
    assert "No outcome is recorded yet." in begun
    assert "The engineer has not decided yet." in begun
    decide(folder, "no idea")
    decide(folder, f"They fail. ANSWER: {ANSWER}")
    found = read_page(folder)
    assert f"Version {folder.files.newest()}, the first" in found
    assert found.count("<polyline") == 4, "a curve of valid answers for each stratum"
    assert '<th scope="col">% out of reach</th><th scope="col">% tokens without signal</th>' in found
    assert "no idea" in found
    assert "answer: not JSON" in found
    assert "You are" in found or "[system]" in found, "the prompts"
    assert "P(valid)" in found, "the difficulty model"
    assert "The trial: tried, and" in found
    assert re.search(r"Decisions used \d+ tokens for the engineer and 7 for trials", found)
    assert "<del>" in found
    record_some(folder, ProblemSource(folder.path).problems(range(100, 102)))
    assert "8 unread answers" in read_page(folder)


def test_texts_of_a_model_stay_texts(folder):
    decide(folder, f"{HOSTILE} ANSWER: {ANSWER}")
    found = read_page(folder)
    assert "<script>alert" not in found
    assert "&lt;script&gt;alert" in found


def test_what_cannot_be_read_is_said_and_the_rest_is_shown(folder):
    decide(folder, f"ANSWER: {ANSWER}")
    design = json.loads((folder.path / "design.json").read_text())
    write_json(folder.path / "design.json", {**design, "strata": {"2": {"share": 0.5, "terms": 2, "carry": 0.5}}})
    found = read_page(folder)
    assert "sum to 0.5, not 1" in found
    setup = json.loads((folder.path / "engineer.json").read_text())
    with listed(folder.path / "engineer.json"):
        write_json(folder.path / "engineer.json", {**setup, "environment": "/nowhere/gone.py:Gone"})
    found = read_page(folder)
    assert "/nowhere/gone.py" in found
    assert "The versions are shown." in found
    (folder.path / "versions" / "0000.json").write_text("{")
    reply = client(folder.path.parent).get("/engineer/shown/e")
    assert reply.status_code >= 400
    assert "0000.json" in reply.text


def test_a_grader_that_may_be_broken_is_named_on_the_page(folder):
    recorder = OutcomeRecorder(folder.path, folder.environment)
    for problem in ProblemSource(folder.path).take(64):
        answers = ["?"] * 4 if problem.cell.stratum == 2 else [problem.answer, "0", "0", "0"]
        recorder.record(problem, answers)
    assert "stratum 2: all 64 answers fail as no_number; a broken grader looks like a hard task" in read_page(folder)
