"""Every long command on a small input: its words, what it writes, and what of that is the same at every end."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lakewright.core_jax.rows import write_rows
from lakewright.core_jax.support import LISTING
from tests.support.boards.generated_rows import small_rows, unsolved
from tests.support.processes.watching import LONGEST_GOODBYE
from tests.support.samples.tiny_sweep import TOML, data_of

STUDY = Path(__file__).parents[2] / "experiments" / "studies" / "study.toml"
CLOCK = ("seconds", "step_time", "processor_seconds", "equal_time", "at_equal_time")
"""Figures of how long this very attempt took."""
EQUAL_TIME = "equal time %"  # a column of a study's table
MINUTES = re.compile("(?<=minutes</th></tr></thead>).*?(?=</table>)", re.DOTALL)  # rows of a table that ends with them
LAST_CELL = re.compile(r"<td>[\d.]+</td>(?=</tr>)")
TINY = (
    *("horizon=8", "stages=2", "model.hidden=32", "model.layers=1", "model.heads=2", "model.mlp=32"),
    *("warmup.steps=24", "warmup.boards=24", "warmup.batch=8", "grpo.steps=3", "grpo.prompts=4", "grpo.group=2"),
    *("trial.boards=8", "trial.share=0", "trial.samples=2", "validation.boards=4"),
)


class Case(NamedTuple):
    """A command, what it writes, what of that must be the same at every end, and how it is run.

    shares: processes that share the work. runs: pieces of work that may fail apart, each with a line of its own.
    fillings: how often a disk is full before twice as much room is left on it; fewer where each attempt takes long.
    workers: how the titles of its workers begin, where it begins other processes too. goodbye: the seconds within which
    all of its processes end.
    """

    words: list[str]
    out: str
    state: Callable[[Path], object]
    kind: str = "commands"
    shares: int = 1
    runs: int = 1
    fillings: int = 4
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
    (folder / "study.toml").write_text(_with_more_steps(STUDY.read_text()))


def _contents(*names: str) -> Callable[[Path], dict[str, bytes]]:
    """The bytes of some files of a folder."""
    return lambda out: {name: (out / name).read_bytes() for name in names}


def _lines_of(*names: str) -> Callable[[Path], dict[str, list[str]]]:
    """The lines of some files of a folder, in any order."""
    return lambda out: {name: sorted((out / name).read_text().splitlines()) for name in names}


def _with_more_steps(spec: str) -> str:
    """The study of the tests with trainings of several steps, between which they can be cut off."""
    return spec.replace("steps = 2,", "steps = 24,").replace("steps = 1,", "steps = 3,")


def _all_but_the_clock(out: Path) -> dict[str, str]:
    """The digest of every file below a folder, weights included, but for figures of the clock and lists of digests."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name not in (".lock", LISTING))
    return {str(path.relative_to(out)): hashlib.sha256(_without_clock(path)).hexdigest() for path in files}


def _without_clock(path: Path) -> bytes:
    """The content of a file of a run or study without the seconds that it names."""
    if path.name in ("done.json", "results.json", "train.jsonl"):
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        return "\n".join(json.dumps(json.loads(line, object_hook=_timeless)) for line in lines).encode()
    if path.name == "report.html":
        return MINUTES.sub(lambda rows: LAST_CELL.sub("", rows[0]), path.read_text()).encode()
    if path.name == "table.txt":
        # The sentence goes first: cutting the column out of its line would leave parts of it.
        lines = [line.split("; equal time is")[0] for line in path.read_text().splitlines()]
        end, place = lines[0].index("minutes"), lines[0].find(EQUAL_TIME)
        kept = [line[:end] if place < 0 else line[:place] + line[place + len(EQUAL_TIME) : end] for line in lines]
        return "\n".join(kept).encode()
    return path.read_bytes()


def _timeless(record: dict[str, object]) -> dict[str, object]:
    """A record without seconds of work: of a stage, a run or an arm (`seconds`), or of a step (`step_time`)."""
    return {name: value for name, value in record.items() if name not in CLOCK}


DRAWN = ("--size", "3", "--agents", "2", "--hole-ratio", "0.2", "--wait-ratio", "0.5", "--count", "100")
ANSWERED = ("bare.jsonl", "--solver", "prioritized")
CASES = {
    "generate": Case(["generate", *DRAWN], "out.jsonl", Path.read_bytes),
    "solve": Case(["solve", "bare.jsonl"], "out.parquet", Path.read_bytes),
    "verify": Case(["verify", "solved.jsonl"], "out.jsonl", Path.read_bytes),
    "verify by workers": Case(["verify", "solved.jsonl", "--workers", "2"], "out.jsonl", Path.read_bytes),
    "benchmark build": Case(
        ["benchmark", "build", "--tier", "small"], "out", _contents("benchmark.jsonl", "manifest.json")
    ),
    "benchmark eval": Case(["benchmark", "eval", *ANSWERED], "out", _lines_of("answers.jsonl", "verdicts.jsonl")),
    "sweep": Case(["sweep", "sweep.toml", "--workers", "2"], "out", data_of),
    "sweep in shards": Case(["sweep", "sweep.toml", "--workers", "2"], "out", data_of, shares=2),
    "sweep on Ray": Case(
        ["sweep", "sweep.toml", "--executor", "ray", "--workers", "2"],
        "out",
        data_of,
        fillings=1,
        workers="ray::_call",
        goodbye=300.0,  # Ray's agents try for a minute to report that their raylet is dead (publish_error_to_driver)
    ),
    "run": Case(
        ["run", "--preset", "cpu", "--teacher", "rules", *TINY], "out", _all_but_the_clock, "training commands"
    ),
    "study": Case(
        ["study", "study.toml", "--workers", "2"], "out", _all_but_the_clock, "training commands", runs=3, fillings=1
    ),
}
