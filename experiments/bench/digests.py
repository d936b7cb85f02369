"""The cost of SHA-256: what share of a command lists the digests of files that it writes, and checks those it reads.

lakewright bench --digests

Each command runs in this process, twice: what is measured is the second time, without the start of a process and the
compiling of programs, which would make the share smaller. Seconds of several threads are added up.
"""

import contextlib
import io
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from lakewright.core_jax.support import check_digest
from lakewright.experiments.bench.lake import describe_machine
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.resumable import journal
from lakewright.experiments.runtime.library_setup import prepare_training
from lakewright.experiments.sweep import shards

LARGE = "100M"
STEPS = ("grpo.steps=1", "grpo.prompts=8", "grpo.group=4", "stages=2")
RUN = ("--teacher", "rules", "warmup.steps=0", "horizon=16", "validation.boards=8", *STEPS, "trial.boards=32")
FEW = 32  # boards, for a large model
SWEEP = "sizes = [5]\nagents = [2]\nhole_ratios = [0.0, 0.2, 0.4]\nboards = 4096\nshard = 1024\n"
ALIKE = ("--size", "5", "--agents", "2", "--hole-ratio", "0.3", "--wait-ratio", "0.5")
DIGESTS = sys.modules[check_digest.__module__]
# Where the functions that list and check are looked up.
TIMED = (
    *((DIGESTS, name) for name in ("digest_of", "_read_listing", "_write_listing")),
    (shards, "digest_of"),
    (journal, "_seal"),
)


class DigestCost(msgspec.Struct, frozen=True):
    """A command: its seconds, and those of them in which files are listed and checked."""

    command: str
    seconds: float
    digests: float

    @property
    def share(self) -> float:
        """The share of the seconds."""
        return self.digests / self.seconds


class DigestsBench(msgspec.Struct, frozen=True):
    """All commands and the machine they were measured on."""

    machine: dict[str, Any]
    costs: list[DigestCost]


def measure_rates() -> DigestsBench:
    """Measures all of it in a folder that is removed afterwards."""
    prepare_training()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("sweep.toml").write_text(SWEEP)
        return DigestsBench(describe_machine(), list(_measure_commands()))


def _measure_commands() -> Iterator[DigestCost]:
    """Each command is run in a new folder `{}`, of which the last is read by those after it."""
    rows, run, model = "rows.jsonl", "run{}", "run2/warmup/checkpoint"
    yield _measure("generate, 8192 boards", ("generate", *ALIKE, "--count", "8192", "--out", "rows{}.jsonl"))
    Path("rows2.jsonl").rename(rows)
    yield _measure("solve, 8192 boards", ("solve", rows, "--out", "solved{}.jsonl"))
    yield _measure("verify, 8192 boards", ("verify", "solved2.jsonl", "--out", "verified{}.jsonl"))
    yield _measure("sweep, 12 288 boards", ("sweep", "run", "sweep.toml", "--out", "sweep{}", "--workers", "1"))
    yield _measure("sweep plot", ("sweep", "plot", "sweep2"))
    yield _measure("run of two small stages", ("run", "--out", run, "start=pretrained", *RUN))
    yield _measure("report", ("report", "run2"))
    yield _measure("engineer show", ("engineer", "show", "run2", "--stage", "0"))
    yield _measure("engineer replay", ("engineer", "replay", "run2"))
    yield _measure("benchmark eval of a solver", _evaluation(rows, "planned{}", "--solver", "greedy"))
    yield _measure("benchmark eval of a model of 0.9 M parameters", _evaluation(rows, "asked{}", "--model", model))
    _save_large_model(Path("large"))
    with open(rows) as lines, open("few.jsonl", "w") as few:
        few.writelines(itertools.islice(lines, FEW))
    yield _measure(
        f"benchmark eval of a model of {LARGE} parameters, {FEW} boards",
        _evaluation("few.jsonl", "large-asked{}", "--model", "large"),
    )


def _save_large_model(folder: Path) -> None:
    """Saves a model with random weights."""
    from lakewright.experiments.loop.settings.run_settings import load_settings
    from lakewright.experiments.loop.training.trainee import make_trainee
    from lakewright.policy.models import save_checkpoint

    save_checkpoint(folder, *make_trainee(load_settings("cpu", [f"model={LARGE}"])).build_model())


def _evaluation(rows: str, out: str, *who: str) -> tuple[str, ...]:
    return ("benchmark", "eval", rows, *who, "--out", out)


def _measure(name: str, words: Sequence[str]) -> DigestCost:
    _call([word.format(1) for word in words])
    with _time_digests() as spent:
        begun = time.perf_counter()
        _call([word.format(2) for word in words])
        return DigestCost(name, time.perf_counter() - begun, sum(spent))


def _call(words: Sequence[str]) -> None:
    """Runs a command. Raises RuntimeError where it fails."""
    from lakewright.experiments.cli.app import main  # which imports the command that measures

    said, problems = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(problems):
        code = main(words)
    if code:
        raise RuntimeError(f"lakewright {' '.join(words)}: {problems.getvalue()[-500:]}")


@contextlib.contextmanager
def _time_digests() -> Iterator[list[float]]:
    """Yields the seconds of each call of TIMED, as they come."""
    spent: list[float] = []
    lock = threading.Lock()

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def measure(*given: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            try:
                return call(*given, **named)
            finally:
                with lock:
                    spent.append(time.perf_counter() - begun)

        return measure

    with contextlib.ExitStack() as stack:
        for place, name in TIMED:
            stack.enter_context(mock.patch.object(place, name, timed(getattr(place, name))))
        yield spent


def format_table(bench: DigestsBench) -> str:
    """The benchmark as Markdown."""
    head = ("command", "seconds", "digests, ms", "share")
    rows = [
        (cost.command, f"{cost.seconds:.2f}", f"{1000 * cost.digests:.1f}", f"{cost.share:.2%}") for cost in bench.costs
    ]
    about = ", ".join(f"{name} {value}" for name, value in bench.machine.items())
    return "\n".join([about, "", *format_markdown(head, rows)])
