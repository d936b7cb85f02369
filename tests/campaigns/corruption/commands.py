"""The commands of the campaign: what each is given, which files it reads, and what its result is."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from tests.campaigns.corruption.damages import Target
from tests.campaigns.corruption.fixtures import ALIKE, ASKED, RUN, SAMPLED, SERVED, TRAINING, WARMING
from tests.campaigns.corruption.outside import POINTS, TRACKER, URL

WEIGHTS, TOKENIZER = "**/model.safetensors", "**/tokenizer*.json"
CHECKPOINT = {"weights": WEIGHTS, "tokenizer": TOKENIZER, "config.json of a model": "**/checkpoint/*config.json"}
STAGES = {
    "records of stages": "stage_*/*.json",
    "records of the warm-up": "warmup/*.json",
    "boards of stages": "stage_*/boards.parquet",
    "logs and answers": "*/*.jsonl",
}
IN_A_RUN = {"config.json of a run": "config.json", "held-out boards": "validation.parquet", **STAGES}
# The clock's figures, which no two runs of a command share, and the lines that list digests of files that hold them.
CLOCK = "seconds|processor_seconds|boards_per_second|seconds_left|finished|step_time|train_runtime"
OF_CLOCK = re.compile(rf'"({CLOCK})":\s*("[^"]*"|[-+.eE\d]+|null)'.encode())


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of the campaign.

    words: what is given after `lakewright`. folders: folders and files that it needs, of which the first is damaged.
    reads: patterns of the files of the first folder that may be damaged, by what they are. inputs: patterns of the
    user's own files, which may be others without a fault. writes: patterns of the files that are its result, in
    addition to what it prints. weight: how often it is drawn.
    """

    name: str
    words: tuple[object, ...]
    folders: tuple[str, ...]
    reads: dict[str, str]
    inputs: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    weight: float = 1.0

    def targets(self, fixtures: Path) -> list[tuple[str, str]]:
        """The kind of each file that may be damaged, and its place in the fixtures."""
        found: dict[str, str] = {}
        damaged = fixtures / self.folders[0]
        for what, pattern in self.reads.items():
            for path in sorted(damaged.glob(pattern)) if damaged.is_dir() else [damaged]:
                if path.is_file() and path.stat().st_size and "best" not in path.parts:
                    found.setdefault(str(path.relative_to(fixtures)), what)
        return [(what, place) for place, what in found.items()]

    def is_input(self, place: str) -> bool:
        """Whether a file is the user's own."""
        return any(Path(place).match(pattern) for pattern in self.inputs)

    def results(self, work: Path) -> Iterator[tuple[str, bytes]]:
        """The files of the result, without the figures of the clock."""
        for pattern in self.writes:
            for path in sorted(work.glob(pattern)):
                if path.is_file() and path.name != "SHA256SUMS":
                    yield str(path.relative_to(work)), without_clock(path.read_bytes())


def target_in(work: Path, fixtures: Path, place: str) -> Target:
    """The file to damage in a copy of the fixtures, with the same file of another run and of an older version."""
    top, _, rest = place.partition("/")
    name, dot, suffix = top.partition(".")
    other = fixtures / (f"{name}.other{dot}{suffix}" if dot else f"{name}.other") / rest
    older = fixtures / f"{name}.older" / rest
    if not older.exists():  # what the first stage wrote is older than what the second did
        older = fixtures / place.replace("stage_01", "stage_00")
    return Target(work / place, other, older)


def without_clock(data: bytes) -> bytes:
    """A result without the figures of the clock."""
    return OF_CLOCK.sub(rb'"\1":0', data)


BOARDS = {"rows in JSONL": "in.jsonl"}
PARQUET = {"rows in Parquet": "in.parquet"}
PARTS = {"job.json": "job.json", "records of parts": "[0-9]*.json", "rows of parts": "[0-9]*.jsonl"}
IN_PARTS = {name: f".{{}}.jsonl.parts/{pattern}" for name, pattern in PARTS.items()}
JOURNAL = {"job.json": "job.json", "journal of answers": "answers.jsonl"}
IN_A_STUDY = {
    "study.json": "study.json",
    "test boards": "test.parquet",
    "results of tests": "**/test.json",
    "config.json of runs": "*/config.json",
    "records of runs": "runs/*/stage_00/*.json",
    "records of the start": "start/warmup/*.json",
}
ENGINEER = {"engineer.json": "engineer.json", "versions": "versions/*.json", "outcomes.jsonl": "outcomes.jsonl",
            "outcomes.index": "outcomes.index"}  # fmt: skip
EDITED = {**ENGINEER, "design.json": "design.json"}
MINE = ("design.json", "outcomes.jsonl")
SPENT = {"spending.jsonl": "spending.jsonl"}
SAVED = {"state of a training": "**/training.safetensors", **IN_A_RUN}
LLM = {"weights": "model.safetensors", "tokenizer": "tokenizer*.json", "config.json of a model": "*config.json"}
SAMPLES = {"sampling.json": "sampling.json", "answers": "answers-*.json"}
TRIED = {"records of trials": "**/trial.json", "checks of trials": "trial_checks/*.json", **IN_A_STUDY, **CHECKPOINT}
TRAINED = ("{0}/*/*.json", "{0}/*/*.jsonl", "{0}/*/checkpoint/*", "{0}/config.json")
RESUMED = ("{0}/stage_01/*.json", "{0}/stage_01/*.jsonl", "{0}/stage_01/checkpoint/*", "{0}/config.json")
ALL = {"JSON": "**/*.json", "JSONL": "**/*.jsonl", "Parquet": "**/*.parquet"}


def _parts_of(command: str, **more: str) -> dict[str, str]:
    return {what: pattern.format(command) for what, pattern in {**IN_PARTS, **more}.items()}


def _fill_patterns(folder: str, patterns: tuple[str, ...] = RESUMED) -> tuple[str, ...]:
    return tuple(pattern.format(folder) for pattern in patterns)


def _bundle(folder: str, reads: dict[str, str], *others: str) -> Command:
    return Command(
        f"view bundle of {folder}", ("view", "bundle", folder, "--out", "site"), (folder, *others), reads,
        writes=("site/**/*.html",), weight=0.3,
    )  # fmt: skip


COMMANDS = [
    Command("generate", ("generate", "--config", "boards/config.json", "--count", 4, "--out", "made.jsonl"),
            ("boards",), {"config": "config.json"}, ("config.json",), ("made.*",)),
    Command("solve", ("solve", "boards/in.jsonl", "--out", "made.jsonl"), ("boards",), BOARDS, ("in.*",), ("made.*",)),
    Command("solve of Parquet", ("solve", "boards/in.parquet", "--out", "made.parquet"), ("boards",), PARQUET,
            ("in.*",), ("made.*",)),
    Command("verify", ("verify", "boards/in.jsonl", "--plans", "boards/plans.jsonl", "--out", "made.jsonl"),
            ("boards",), {**BOARDS, "plans": "plans.jsonl"}, ("in.*", "plans.*"), ("made.*",)),
    Command("convert", ("convert", "boards/maps.yaml", "--out", "made.jsonl"), ("boards",), {"maps": "maps.yaml"},
            ("maps.*",), ("made.*",)),
    Command("solve, resumed",
            ("solve", "parts/in.jsonl", "--rejects", "parts/left.jsonl", "--out", "parts/solve.jsonl"),
            ("parts",), _parts_of("solve", rejects=".{}.jsonl.parts/*.rejected"), (), ("parts/*.jsonl",)),
    Command("verify, resumed",
            ("verify", "parts/in.jsonl", "--plans", "parts/plans.jsonl", "--out", "parts/verify.jsonl"), ("parts",),
            _parts_of("verify", **{"index of plans": ".{}.jsonl.parts/plans.sqlite"}), (), ("parts/*.jsonl",)),
    Command("generate, resumed", ("generate", *ALIKE, "--count", 4, "--out", "parts/generate.jsonl"), ("parts",),
            _parts_of("generate"), (), ("parts/generate*",)),
    Command("benchmark build, resumed",
            ("benchmark", "build", "--tier", "paper", "--seed", 0, "--out", "cells"), ("cells",),
            {"request.json": "cells/request.json", "rows of cells": "cells/*.jsonl"}, (), ("cells/*",)),
    Command("benchmark build", ("benchmark", "build", "--tier", "paper", "--seed", 0, "--out", "benchmark", "--json"),
            ("benchmark",), {"manifest.json": "manifest.json", "rows": "benchmark.*"}, (), ("benchmark/*",)),
    Command("benchmark export", ("benchmark", "export", "benchmark", "--to", "hub", "--json"), ("benchmark",),
            {"manifest.json": "manifest.json", "rows": "benchmark.parquet"}, (), ("hub/**/*",)),
    Command("benchmark eval", ("benchmark", "eval", "boards/in.jsonl", "--solver", "greedy", "--out", "made", "--json"),
            ("boards",), BOARDS, ("in.*",), ("made/*",)),
    Command("benchmark eval of a model",
            ("benchmark", "eval", "boards/in.jsonl", "--model", "run/warmup/checkpoint", "--out", "made", "--json"),
            ("run", "boards"), {what: pattern.replace("**", "warmup/checkpoint", 1) for what, pattern in
                                CHECKPOINT.items()} | {"config.json of a model": "warmup/checkpoint/*config.json"},
            (), ("made/*",), 0.5),
    Command("benchmark eval, resumed", ("benchmark", "eval", "benchmark", "--solver", "prioritized", "--seed", 0,
            "--out", "evaluation", "--json"), ("evaluation", "benchmark"), JOURNAL, (), ("evaluation/*",)),
    Command("sweep, resumed", ("sweep", "run", "sweep.toml", "--out", "sweep", "--workers", 1, "--json"),
            ("sweep", "sweep.toml"), {"manifest.json": "manifest.json", "records of shards": "shards/*.json"}),
    Command("sweep status", ("sweep", "status", "sweep", "--json"), ("sweep",),
            {"manifest.json": "manifest.json", "records of shards": "shards/*.json"}),
    Command("sweep plot", ("sweep", "plot", "sweep", "--json"), ("sweep",),
            {"manifest.json": "manifest.json", "records of shards": "shards/*.json", "shards": "shards/*.parquet"},
            (), ("sweep/cells.json", "sweep/plots/*.svg"), 0.2),
    Command("sweep of a spec", ("sweep", "run", "sweep.toml", "--out", "sweep", "--workers", 1, "--json"),
            ("sweep.toml", "sweep"), {"spec": ""}, ("sweep.toml",)),
    Command("study of a spec", ("study", "study.toml", "--out", "study", "--results-only", "--json"),
            ("study.toml", "study"), {"spec": ""}, ("study.toml",), (), 0.3),
    Command("run, finished", ("run", "--out", "run", *RUN, "--seed", 0, "--json"), ("run",), IN_A_RUN, (),
            _fill_patterns("run")),
    Command("run, resumed before a validation", ("run", "--out", "trained", *RUN, "--seed", 0, "--json"),
            ("trained",), {**IN_A_RUN, **CHECKPOINT}, (), _fill_patterns("trained"), 0.3),
    Command("run, resumed before a decision", ("run", "--out", "validated", *RUN, "--seed", 0, "--json"),
            ("validated",), IN_A_RUN, (), _fill_patterns("validated")),
    Command("run, resumed in its warm-up", ("run", "--out", "warming", *WARMING, "--seed", 0, "--json"), ("warming",),
            SAVED, (), _fill_patterns("warming", TRAINED), 0.5),
    Command("run, resumed in a training", ("run", "--out", "training", *TRAINING, "--seed", 0, "--json"),
            ("training",), SAVED, (), _fill_patterns("training", TRAINED), 0.5),
    Command("run with a server, resumed before a decision", ("run", "--out", "told", *ASKED, "--seed", 0, "--json"),
            ("told",), {**SPENT, **IN_A_RUN}, (), _fill_patterns("told")),
    Command("benchmark eval of a server, resumed",
            ("benchmark", "eval", "boards/in.jsonl", "--endpoint", URL, "--model-name", "m", *SERVED, "--out", "asked",
             "--json"), ("asked", "boards"), {**SPENT, **JOURNAL}, (), ("asked/*.json", "asked/verdicts.jsonl")),
    Command("track", ("track", "run", "--to", TRACKER, "--json"), ("run",), IN_A_RUN, (), (f"run/{POINTS}",)),
    Command("track, resumed", ("track", "tracked", "--to", TRACKER, "--json"), ("tracked",),
            {"published.json": "published.json", **IN_A_RUN}, (), (f"tracked/{POINTS}", "tracked/published.json")),
    Command("engineer sample", ("engineer", "sample", "run", *SAMPLED, "--models", "llm", "--json"), ("run", "llm"),
            IN_A_RUN, weight=0.5),
    Command("engineer sample of a model", ("engineer", "sample", "run", *SAMPLED, "--models", "llm", "--json"),
            ("llm", "run"), LLM, weight=0.5),
    Command("engineer sample, resumed",
            ("engineer", "sample", "run", *SAMPLED, "--models", "llm", "--out", "samples", "--json"),
            ("samples", "run", "llm"), SAMPLES, (), ("samples/*",)),
    Command("engineer next with a server", ("engineer", "next", "served", "--json"), ("served", "starter.py"),
            {**SPENT, **EDITED}, MINE, ("served/versions/*", "served/design.json")),
    Command("study check-trials", ("study", "check-trials", "tried", "--count", 2, "--boards", 8, "--json"), ("tried",),
            TRIED, (), ("tried/trial_checks/*.json",)),
    Command("report", ("report", "run", "--json"), ("run",), IN_A_RUN, (), ("run/report.html",)),
    Command("engineer show", ("engineer", "show", "run", "--stage", 0, "--json"), ("run",), IN_A_RUN),
    Command("engineer propose", ("engineer", "propose", "run", "--teacher", "sec", "--json"), ("run",), IN_A_RUN),
    Command("engineer replay", ("engineer", "replay", "run", "--teachers", "rules,sec", "--json"), ("run",), IN_A_RUN),
    Command("engineer status", ("engineer", "status", "engineer", "--json"), ("engineer", "starter.py"), EDITED, MINE),
    Command("engineer log", ("engineer", "log", "engineer"), ("engineer", "starter.py"), EDITED, MINE),
    Command("engineer next", ("engineer", "next", "engineer", "--json"), ("engineer", "starter.py"), EDITED, MINE,
            ("engineer/versions/*", "engineer/design.json")),
    Command("engineer undo", ("engineer", "undo", "engineer", "--json"), ("engineer", "starter.py"), EDITED, MINE,
            ("engineer/versions/*", "engineer/design.json")),
    Command("study, summed up", ("study", "study.toml", "--out", "study", "--results-only", "--json"),
            ("study", "study.toml"), IN_A_STUDY, (), ("study/results.json", "study/*.svg"), 0.5),
    Command("study, resumed", ("study", "study.toml", "--out", "study", "--json"), ("study", "study.toml"), IN_A_STUDY,
            (), ("study/results.json",), 0.3),
    Command("settings", ("settings", "--preset", "cpu", "--json"), ("presets",), {"preset": "cpu.toml"}, ("cpu.toml",)),
    Command("estimate", ("estimate", "--preset", "cpu", "--json"), ("presets",), {"preset": "cpu.toml"}, ("cpu.toml",)),
    _bundle("run", IN_A_RUN), _bundle("evaluation", {**JOURNAL, **ALL}, "benchmark"), _bundle("benchmark", ALL),
    _bundle("sweep", ALL),
]  # fmt: skip
