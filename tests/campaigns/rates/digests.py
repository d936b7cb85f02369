"""The cost of SHA-256: what share of a command lists the digests of files that it writes, and checks those it reads.

python -m tests.campaigns digests

Each command runs as a user runs it, in a process of its own, and then twice in this process. The digests are measured
in the last of these. The share of a process is what a user notices; that of the work leaves out the start and the
compiling of programs, and is what a command on many more rows comes to. Seconds of several threads are added up.
"""

import contextlib
import functools
import io
import itertools
import subprocess
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
from lakewright.experiments.boards.sweep import shards
from lakewright.experiments.jobs.resumable import journal
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries

Main = Callable[[Sequence[str]], int]
LARGE = "100M"
STEPS = ("grpo.steps=1", "grpo.prompts=8", "grpo.group=4", "stages=2")
RUN = (
    "--teacher",
    "rules",
    "warmup.steps=0",
    "horizon=16",
    "validation.boards=8",
    *STEPS,
    "trial.boards=32",
    "trial.share=0",
)
SOME, FEW = 4096, 32  # boards, for a small and a large model
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
    """A command: its seconds in a process of its own, those of its work, and those in which files are checked."""

    command: str
    process: float
    work: float
    digests: float


class DigestsBench(msgspec.Struct, frozen=True):
    """All commands and the machine they were measured on."""

    machine: dict[str, Any]
    costs: list[DigestCost]


def measure_rates(main: Main) -> DigestsBench:
    """Measures all of it in a folder that is removed afterwards. main: runs a command and returns its exit code."""
    prepare_libraries()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("sweep.toml").write_text(SWEEP)
        return DigestsBench(describe_machine(), list(_measure_commands(functools.partial(_call, main))))


def _measure_commands(call: Callable[[Sequence[str]], None]) -> Iterator[DigestCost]:
    """Each command is run in a new folder `{}`, of which the last is read by those after it. call: runs a command."""
    measure = functools.partial(_measure, call)
    rows, run, model = "rows.jsonl", "run{}", "run3/warmup/checkpoint"
    yield measure("generate, 65 536 boards", ("generate", *ALIKE, "--count", "65536", "--out", "rows{}.jsonl"))
    Path("rows3.jsonl").rename(rows)
    yield measure("solve, 65 536 boards", ("solve", rows, "--out", "solved{}.jsonl"))
    yield measure("verify, 65 536 boards", ("verify", "solved3.jsonl", "--out", "verified{}.jsonl"))
    yield measure("sweep, 12 288 boards", ("sweep", "run", "sweep.toml", "--out", "sweep{}", "--workers", "1"))
    yield measure("sweep plot", ("sweep", "plot", "sweep3"))
    yield measure("run of two small stages", ("run", "--out", run, "start=pretrained", *RUN))
    yield measure("report", ("report", "run3"))
    yield measure("engineer show", ("engineer", "show", "run3", "--stage", "0"))
    yield measure("engineer replay", ("engineer", "replay", "run3"))
    _copy_rows(rows, "some.jsonl", SOME)
    _copy_rows(rows, "few.jsonl", FEW)
    yield measure(
        f"benchmark eval of a solver, {SOME} boards", _evaluation("some.jsonl", "planned{}", "--solver", "greedy")
    )
    small = f"benchmark eval of a model of 0.9 M parameters, {SOME} boards"
    yield measure(small, _evaluation("some.jsonl", "asked{}", "--model", model))
    _save_large_model(Path("large"))
    yield measure(
        f"benchmark eval of a model of {LARGE} parameters, {FEW} boards",
        _evaluation("few.jsonl", "large-asked{}", "--model", "large"),
    )


def _copy_rows(rows: str, to: str, count: int) -> None:
    """Copies the first rows of a file to another."""
    with open(rows) as lines, open(to, "w") as few:
        few.writelines(itertools.islice(lines, count))


def _save_large_model(folder: Path) -> None:
    """Saves a model with random weights."""
    from lakewright.experiments.loop.settings.run_settings import load_settings
    from lakewright.experiments.loop.training.trainee import make_trainee
    from lakewright.policy.models import save_checkpoint

    save_checkpoint(folder, *make_trainee(load_settings("cpu", [f"model={LARGE}"])).build_model())


def _evaluation(rows: str, out: str, *who: str) -> tuple[str, ...]:
    return ("benchmark", "eval", rows, *who, "--out", out)


def _measure(call: Callable[[Sequence[str]], None], name: str, words: Sequence[str]) -> DigestCost:
    process = _time(_call_process, [word.format(1) for word in words])
    call([word.format(2) for word in words])
    with _time_digests() as spent:
        work = _time(call, [word.format(3) for word in words])
    return DigestCost(name, process, work, sum(spent))


def _time(call: Callable[[Sequence[str]], None], words: Sequence[str]) -> float:
    begun = time.perf_counter()
    call(words)
    return time.perf_counter() - begun


def _call_process(words: Sequence[str]) -> None:
    """Runs a command in a process of its own. Raises RuntimeError if it fails."""
    done = subprocess.run([sys.executable, "-m", "lakewright.experiments.cli", *words], capture_output=True, text=True)
    _check(done.returncode, words, done.stderr)


def _call(main: Main, words: Sequence[str]) -> None:
    """Runs a command in this process. Raises RuntimeError if it fails."""
    said, problems = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(problems):
        code = main(words)
    _check(code, words, problems.getvalue())


def _check(code: int, words: Sequence[str], problems: str) -> None:
    if code:
        raise RuntimeError(f"lakewright {' '.join(words)}: {problems[-500:]}")


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
    head = ("command", "process, s", "work, s", "digests, ms", "of the process", "of the work")
    rows = [
        (
            cost.command,
            f"{cost.process:.2f}",
            f"{cost.work:.2f}",
            f"{1000 * cost.digests:.1f}",
            f"{cost.digests / cost.process:.2%}",
            f"{cost.digests / cost.work:.2%}",
        )
        for cost in bench.costs
    ]
    about = ", ".join(f"{name} {value}" for name, value in bench.machine.items())
    return "\n".join([about, "", *format_markdown(head, rows)])
