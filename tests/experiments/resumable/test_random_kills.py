"""Every long command, killed at random instants or robbed of a worker, ends as if nothing had happened."""

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from core_jax.rows import write_rows
from tests.support.boards.generated_rows import small_rows, unsolved
from tests.support.processes.killable import server
from tests.support.processes.random_kills import Command, Kills, kill_at_random
from tests.support.samples.tiny_sweep import TOML, data_of

INSTANTS = int(os.environ.get("LAKEWRIGHT_KILLS", "100"))  # at which each command is killed in a deep test
FEW = 2
STUDY = Path(__file__).parents[1] / "study" / "study.toml"
TINY = (
    *("horizon=8", "stages=2", "model.hidden=32", "model.layers=1", "model.heads=2", "model.mlp=32"),
    *("warmup.steps=2", "warmup.boards=24", "warmup.batch=8", "grpo.steps=1", "grpo.prompts=4", "grpo.group=2"),
    *("trial.boards=8", "trial.samples=2", "validation.boards=4"),
)


def contents(*names: str) -> Callable[[Path], dict[str, bytes]]:
    """The bytes of some files of a folder."""
    return lambda out: {name: (out / name).read_bytes() for name in names}


def lines_of(*names: str) -> Callable[[Path], dict[str, list[str]]]:
    """The lines of some files of a folder, in any order."""
    return lambda out: {name: sorted((out / name).read_text().splitlines()) for name in names}


def boards_of_runs(out: Path) -> dict[str, object]:
    """The names of all files below a folder, and the boards and configs of all stages; weights and times may differ."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name != ".lock")
    found: dict[str, object] = {str(path.relative_to(out)): None for path in files}
    for path in files:
        if path.name in ("boards.parquet", "validation.parquet"):
            found[str(path.relative_to(out))] = pq.read_table(path).to_pylist()
    return found


class Case(NamedTuple):
    """A command, what it writes, what of that must be the same at every end, and how it is run."""

    line: list[str]
    out: str
    state: Callable[[Path], object]
    kind: str = "commands"
    shares: int = 1


DRAWN = ("--size", "3", "--agents", "2", "--hole-ratio", "0.2", "--wait-ratio", "0.5", "--count", "100")
ANSWERED = ("bare.jsonl", "--solver", "prioritized")
CASES = {
    "generate": Case(["generate", *DRAWN], "out.jsonl", Path.read_bytes),
    "solve": Case(["solve", "bare.jsonl"], "out.parquet", Path.read_bytes),
    "verify": Case(["verify", "solved.jsonl"], "out.jsonl", Path.read_bytes),
    "benchmark build": Case(
        ["benchmark", "build", "--tier", "small"], "out", contents("benchmark.jsonl", "manifest.json")
    ),
    "benchmark eval": Case(["benchmark", "eval", *ANSWERED], "out", lines_of("answers.jsonl", "verdicts.jsonl")),
    "sweep": Case(["sweep", "sweep.toml", "--workers", "2"], "out", data_of),
    "sweep in shards": Case(["sweep", "sweep.toml", "--workers", "2"], "out", data_of, shares=2),
    "run": Case(["run", "--preset", "cpu", "--teacher", "rules", *TINY], "out", boards_of_runs, "training commands"),
    "study": Case(["study", str(STUDY), "--workers", "2"], "out", boards_of_runs, "training commands"),
}


@pytest.fixture
def inputs(tmp_path) -> Path:
    """A folder with what the commands read."""
    rows = small_rows(count=50)
    write_rows(tmp_path / "solved.jsonl", rows)
    write_rows(tmp_path / "bare.jsonl", [unsolved(row) for row in rows])
    (tmp_path / "sweep.toml").write_text(TOML)
    return tmp_path


def kill(folder: Path, case: Case, instants: int) -> Kills:
    """Kills a command of one process, or one of several that share its work, and prints how often."""
    out, shares = folder / case.out, case.shares
    words = [str(folder / word) if (folder / word).exists() else word for word in case.line]
    lines = [[*words, "--out", str(out), *([f"--shard={i}/{shares}"] if shares > 1 else [])] for i in range(shares)]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server(case.kind)) for _ in range(shares)]
        kills = kill_at_random(Command(servers, lines), out, case.state, instants, seed=0)
    print(f"{' '.join(case.line[:2])}: {kills}", file=sys.stderr)
    return kills


def test_a_command_that_is_killed_at_some_instants_ends_the_same(inputs):
    kills = kill(inputs, CASES["generate"], FEW)
    assert kills.instants >= FEW
    assert all(end == kills.undisturbed for end in kills.ends), kills


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_a_command_that_is_killed_at_many_instants_ends_the_same(inputs, name):
    kills = kill(inputs, CASES[name], INSTANTS)
    assert kills.instants >= INSTANTS
    assert all(end == kills.undisturbed for end in kills.ends), kills
