"""Every long command, killed at random instants or robbed of a worker, ends as if nothing had happened."""

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from core_jax.rows import write_rows
from tests.support.boards.generated_rows import small_rows, unsolved
from tests.support.processes.killable import server
from tests.support.processes.random_kills import Command, kill_at_random
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


DRAWN = ("--size", "3", "--agents", "2", "--hole-ratio", "0.2", "--wait-ratio", "0.5", "--count", "100")
ANSWERED = ("bare.jsonl", "--solver", "prioritized")
CHEAP = {
    "generate": (["generate", *DRAWN], "out.jsonl", Path.read_bytes),
    "solve": (["solve", "bare.jsonl"], "out.parquet", Path.read_bytes),
    "verify": (["verify", "solved.jsonl"], "out.jsonl", Path.read_bytes),
    "benchmark build": (["benchmark", "build", "--tier", "small"], "out", contents("benchmark.jsonl", "manifest.json")),
    "benchmark eval": (["benchmark", "eval", *ANSWERED], "out", lines_of("answers.jsonl", "verdicts.jsonl")),
    "sweep": (["sweep", "sweep.toml", "--workers", "2"], "out", data_of),
}
LEARNED = {
    "run": (["run", "--preset", "cpu", "--teacher", "rules", *TINY], "out", boards_of_runs),
    "study": (["study", str(STUDY), "--workers", "2"], "out", boards_of_runs),
}


@pytest.fixture
def inputs(tmp_path) -> Path:
    """A folder with what the commands read."""
    rows = small_rows(count=50)
    write_rows(tmp_path / "solved.jsonl", rows)
    write_rows(tmp_path / "bare.jsonl", [unsolved(row) for row in rows])
    (tmp_path / "sweep.toml").write_text(TOML)
    return tmp_path


def kill(folder: Path, case: tuple, instants: int, kind: str = "commands", shares: int = 1) -> None:
    """Kills a command of one process, or of several that share its work, and says how often."""
    line, name, state = case
    out = folder / name
    words = [str(folder / word) if (folder / word).exists() else word for word in line]
    lines = [[*words, "--out", str(out), *([f"--shard={i}/{shares}"] if shares > 1 else [])] for i in range(shares)]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server(kind)) for _ in range(shares)]
        kills = kill_at_random(Command(servers, lines), out, state, instants, seed=0)
    assert kills.instants >= instants
    print(f"{' '.join(line[:2])}: {kills}", file=sys.stderr)


def test_a_command_that_is_killed_at_some_instants_ends_the_same(inputs):
    kill(inputs, CHEAP["generate"], FEW)


@pytest.mark.deep
@pytest.mark.parametrize("name", CHEAP)
def test_a_command_that_is_killed_at_many_instants_ends_the_same(inputs, name):
    kill(inputs, CHEAP[name], INSTANTS)


@pytest.mark.deep
def test_a_sweep_in_shards_of_which_one_is_killed_at_many_instants_ends_the_same(inputs):
    kill(inputs, CHEAP["sweep"], INSTANTS, shares=2)


@pytest.mark.deep
@pytest.mark.parametrize("name", LEARNED)
def test_a_run_or_study_that_is_killed_at_many_instants_ends_the_same(inputs, name):
    kill(inputs, LEARNED[name], INSTANTS, "training commands")
