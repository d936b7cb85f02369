"""Folders of an engineer of sums, and a trainer that answers by chance and decides every three steps."""

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from lakewright.engineer import Problem
from lakewright.experiments.trainers.answer_groups import Answer
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.outcome_lines import Line
from lakewright.experiments.trainers.outcomes import OutcomeReader
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.processes.commands import HOUSE

ADDITION = f"{HOUSE / 'docs' / 'examples' / 'addition.py'}:Addition"
GROUP = 4  # answers


def begin_engineer(path: Path, **options: Any) -> EngineerFolder:
    """A folder of the example of sums."""
    return EngineerFolder.begin(path, ADDITION, **{"teacher": "random"} | options)


def guess(problem: Problem, count: int = GROUP) -> list[str]:
    """Answers, about half of them right, the same for the same problem."""
    rng = random.Random(problem.key)
    return [problem.answer if rng.random() < 0.5 else rng.choice(["0", "?"]) for _ in range(count)]


def record_some(folder: EngineerFolder, problems: list[Problem], **options: Any) -> None:
    """Records guesses."""
    recorder = OutcomeRecorder(folder.path, folder.environment)
    for problem in problems:
        recorder.record(problem, guess(problem), tokens=[3] * GROUP, **options)


def train_with_engineer(path: Path, steps: int = 9) -> None:
    """Trains from the first step on, as a trainer without checkpoints does when it is started again."""
    folder = EngineerFolder(path) if (path / "design.json").exists() else begin_engineer(path, sampler="signal")
    source, recorder = ProblemSource(path), OutcomeRecorder(path, folder.environment)
    for step in range(1, steps + 1):
        for place in range(4 * step - 4, 4 * step):
            recorder.record(source[place], guess(source[place]), tokens=[3] * GROUP, group=f"{step} {place}")
        if step % 3 == 0:
            folder.next(step=step)


def read_groups(path: Path) -> dict[str, list[Line]]:
    """The answers that count, by group."""
    folder = EngineerFolder(path)
    newest = folder.files.read_version(folder.files.newest())
    reader = OutcomeReader(path / "outcomes.jsonl", folder.space, newest.design, newest.version)
    groups = defaultdict(list)
    for answer in reader.read_answers():
        if isinstance(answer, Answer):
            groups[answer.line.group].append(answer.line)
    return groups


def state_of(path: Path) -> dict[str, Any]:
    """What must be the same in the end: versions, apart from where they stopped reading, outcomes that count, pins."""
    versions = {file.name: json.loads(file.read_text()) for file in sorted((path / "versions").glob("*.json"))}
    for version in versions.values():
        del version["offset"], version["outcomes"]
    status = msgspec.to_builtins(EngineerFolder(path).status())
    del status["complaint"]  # which tells of lines that a trainer wrote twice because it was started again
    pins = sorted({line for file in path.glob("pins-*.jsonl") for line in file.read_text().splitlines() if line})
    return {**versions, "design": (path / "design.json").read_text(), "status": status, "pins": pins}
