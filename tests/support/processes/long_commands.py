"""Every long command on a small input: its words, what it writes, and what of that is the same at every end."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from core_jax.rows import write_rows
from tests.support.boards.generated_rows import small_rows, unsolved
from tests.support.processes.watching import LONGEST_GOODBYE
from tests.support.samples.tiny_sweep import TOML, data_of

STUDY = Path(__file__).parents[2] / "experiments" / "study" / "study.toml"
TINY = (
    *("horizon=8", "stages=2", "model.hidden=32", "model.layers=1", "model.heads=2", "model.mlp=32"),
    *("warmup.steps=2", "warmup.boards=24", "warmup.batch=8", "grpo.steps=1", "grpo.prompts=4", "grpo.group=2"),
    *("trial.boards=8", "trial.samples=2", "validation.boards=4"),
)


class Case(NamedTuple):
    """A command, what it writes, what of that must be the same at every end, and how it is run.

    workers: how the titles of its workers begin, where it begins other processes too. goodbye: the seconds within which
    all of its processes end.
    """

    words: list[str]
    out: str
    state: Callable[[Path], object]
    kind: str = "commands"
    shares: int = 1
    workers: str = ""
    goodbye: float = LONGEST_GOODBYE

    def lines(self, folder: Path, place: Path | None = None) -> list[list[str]]:
        """Its command lines, one for each process that shares the work, on the inputs that lie in `folder`.

        place: the folder in which it writes, by default that of the inputs.
        """
        out = (place or folder) / self.out
        words = [str(folder / word) if (folder / word).exists() else word for word in self.words]
        shares = [[f"--shard={i}/{self.shares}"] for i in range(self.shares)] if self.shares > 1 else [[]]
        return [[*words, "--out", str(out), *share] for share in shares]


def write_inputs(folder: Path) -> None:
    """Writes what the commands read."""
    rows = small_rows(count=50)
    write_rows(folder / "solved.jsonl", rows)
    write_rows(folder / "bare.jsonl", [unsolved(row) for row in rows])
    (folder / "sweep.toml").write_text(TOML)


def _contents(*names: str) -> Callable[[Path], dict[str, bytes]]:
    """The bytes of some files of a folder."""
    return lambda out: {name: (out / name).read_bytes() for name in names}


def _lines_of(*names: str) -> Callable[[Path], dict[str, list[str]]]:
    """The lines of some files of a folder, in any order."""
    return lambda out: {name: sorted((out / name).read_text().splitlines()) for name in names}


def _boards_of_runs(out: Path) -> dict[str, object]:
    """The names of all files below a folder, and the boards and configs of all stages; weights and times may differ."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name != ".lock")
    found: dict[str, object] = {str(path.relative_to(out)): None for path in files}
    for path in files:
        if path.name in ("boards.parquet", "validation.parquet"):
            found[str(path.relative_to(out))] = pq.read_table(path).to_pylist()
    return found


DRAWN = ("--size", "3", "--agents", "2", "--hole-ratio", "0.2", "--wait-ratio", "0.5", "--count", "100")
ANSWERED = ("bare.jsonl", "--solver", "prioritized")
CASES = {
    "generate": Case(["generate", *DRAWN], "out.jsonl", Path.read_bytes),
    "solve": Case(["solve", "bare.jsonl"], "out.parquet", Path.read_bytes),
    "verify": Case(["verify", "solved.jsonl"], "out.jsonl", Path.read_bytes),
    "benchmark build": Case(
        ["benchmark", "build", "--tier", "small"], "out", _contents("benchmark.jsonl", "manifest.json")
    ),
    "benchmark eval": Case(["benchmark", "eval", *ANSWERED], "out", _lines_of("answers.jsonl", "verdicts.jsonl")),
    "sweep": Case(["sweep", "sweep.toml", "--workers", "2"], "out", data_of),
    "sweep in shards": Case(["sweep", "sweep.toml", "--workers", "2"], "out", data_of, shares=2),
    "sweep on Ray": Case(
        ["sweep", "sweep.toml", "--backend", "ray", "--workers", "2"],
        "out",
        data_of,
        workers="ray::_call",
        goodbye=300.0,  # Ray's agents try for a minute to report that their raylet is dead (publish_error_to_driver)
    ),
    "run": Case(["run", "--preset", "cpu", "--teacher", "rules", *TINY], "out", _boards_of_runs, "training commands"),
    "study": Case(["study", str(STUDY), "--workers", "2"], "out", _boards_of_runs, "training commands"),
}
