"""Each figure of the folder of an engineer, worked out again from the lines that a trainer appended.

Where figures are shown: `lakewright engineer status` (the outcomes by version and stratum, held-out answers, what is
not read yet), and the report of `engineer next` (answers, groups and tokens that a decision was made from).
"""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from lakewright.experiments.cli.engineer_folder import status_text
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.samples.engineer_folders import begin_engineer, record_some


@pytest.fixture
def folder(tmp_path) -> EngineerFolder:
    """A version with outcomes that are not read yet."""
    folder = begin_engineer(tmp_path / "e", held_out=12)
    record_some(folder, ProblemSource(folder.path).take(16))
    record_some(folder, folder.held_out(), split="held_out")
    return folder


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in (path / "outcomes.jsonl").read_text().splitlines()]


def test_the_report_counts_the_lines_that_it_read(folder):
    report, found = folder.next(), lines(folder.path)
    trained = [line for line in found if line.get("split", "train") == "train"]
    assert report.counts.answers == len(trained)
    assert report.counts.held_out == len(found) - len(trained)
    assert report.counts.groups == len({(line["group"], line["key"]) for line in trained})
    assert report.counts.tokens == sum(line["tokens"] for line in found)


def test_the_status_counts_answers_by_version_and_stratum(folder):
    folder.next()
    source = ProblemSource(folder.path)
    source.take(16)
    record_some(folder, source.take(8))
    shown, counts = status_text(folder.status()), defaultdict(lambda: [0, 0])
    found = lines(folder.path)
    for line in found:
        if line.get("split", "train") == "train":
            place = counts[str(line["version"]), str(line["stratum"])]
            place[0] += line["valid"]
            place[1] += 1
    seen = {}
    for version, parts in re.findall(r"^outcomes of version (\d+): (.*)$", shown, re.MULTILINE):
        for stratum, valid, of in re.findall(r"(\d+) (\d+) of (\d+) valid", parts):
            seen[version, stratum] = [int(valid), int(of)]
    assert seen == counts
    assert {version for version, _ in seen} == {"0", "1"}
    held_out, pending = re.search(r"(\d+) held-out answers, (\d+) answers not read yet", shown).groups()
    assert int(held_out) == sum(line.get("split") == "held_out" for line in found)
    assert int(pending) == sum(line["version"] == 1 for line in found)
