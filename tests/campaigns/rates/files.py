"""Files drawn, solved and verified, compared with the core that does the work; the first board, many kinds, and memory.

python -m tests.campaigns files

Core and files take turns in one run; rates are medians. Start-up is that of whole processes whose programs are cached.
"""

import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np
import pyarrow.json
import pyarrow.parquet

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.core_jax.lake import verify
from lakewright.core_jax.rows import Row, column_writer, columns_in_turn, write_rows
from lakewright.core_jax.solver import solve
from lakewright.experiments.bench.lake import HOLE_RATIO, describe_machine, random_boards
from lakewright.experiments.bench.measurement import format_markdown, wall_and_processor
from lakewright.experiments.boards.files import generate_file, solve_file, verify_file

SIZES, ROWS, DRAWN = (5, 8, 10), 1 << 16, 1 << 13
WAIT_RATIO = 0.5
REPEATS = 3
FORMS = (".jsonl", ".parquet")
KINDS, ROWS_A_KIND = [(size, agents) for size in range(3, 13) for agents in (1, 2, 3)], 100
TEAMS = (2, 5)  # of the first board
MORE = 4  # times as many rows, for their memory
READ = "read, by pyarrow alone"  # which every command that reads a file needs, in addition to the core that verifies
_READERS: dict[str, Callable[[Path], object]] = {
    ".jsonl": pyarrow.json.read_json,
    ".parquet": pyarrow.parquet.read_table,
}


class FileRate(msgspec.Struct, frozen=True):
    """Rows a second of a command on files of one form, of the core on arrays, and the one as a share of the other.

    processor: the share by processor time, which other work on the machine disturbs less.
    """

    work: str
    size: int
    form: str
    rate: float
    core: float
    share: float
    processor: float


class FilesBench(msgspec.Struct, frozen=True):
    """first_board: seconds from the start of `generate` to the end of its one board, by agents. cold_board: likewise,
    with nothing compiled yet. kinds: seconds to solve ROWS_A_KIND rows of each of KINDS. peak_mib: the most memory of
    `solve`, by rows.
    """

    machine: dict[str, Any]
    rates: list[FileRate]
    first_board: dict[int, float]
    cold_board: dict[int, float]
    kinds: float
    peak_mib: dict[int, float]


def measure_rates() -> FilesBench:
    """Measures all of it in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = [rate for size in SIZES for rate in file_rates(folder, size)]
        return FilesBench(
            describe_machine(), rates, *_time_first_boards(folder), _count_kinds(folder), _measure_memory(folder)
        )


def file_rates(folder: Path, size: int) -> Iterator[FileRate]:
    """The rates of three commands on boards of one size for two agents."""
    config = EnvConfig.single(size, 2, HOLE_RATIO, WAIT_RATIO)
    drawn = generate(config, 0, min(DRAWN, ROWS))[size]
    repeated = np.arange(ROWS) % len(drawn.index)
    boards, moves = jax.tree.map(lambda field: np.asarray(field)[repeated], (drawn.boards, drawn.labels.moves))
    for form in FORMS:
        with column_writer(folder / f"in{form}") as write:
            for _ in range(ROWS // len(drawn.index)):
                write(columns_in_turn([{size: drawn}], [config]))

    def draw_all() -> None:
        for first in range(0, ROWS, DRAWN):
            generate(config, 0, min(DRAWN, ROWS - first), first=first)

    def of(form: str) -> tuple[Path, Path]:
        return folder / f"in{form}", folder / f"out{form}"

    calls: dict[str, tuple[Callable[[], object], Callable[[str], object]]] = {
        "generate": (draw_all, lambda form: generate_file(config, 0, ROWS, folder / f"drawn{form}")),
        "solve": (lambda: solve(boards), lambda form: solve_file(*of(form))),
        "verify": (lambda: verify(boards, moves), lambda form: verify_file(*of(form))),
        READ: (lambda: verify(boards, moves), lambda form: _READERS[form](folder / f"in{form}")),
    }
    for work, (core, command) in calls.items():
        turn: list[Callable[[], object]] = [core, *(functools.partial(command, form) for form in FORMS)]
        turns = [[wall_and_processor(call)[:2] for call in turn] for _ in range(REPEATS + 1)]
        wall, used = np.median(turns[1:], axis=0).T.tolist()  # the first compiles
        for place, form in enumerate(FORMS, 1):
            rate, alone = ROWS / wall[place], ROWS / wall[0]
            yield FileRate(work, size, form, rate, alone, wall[0] / wall[place], used[0] / used[place])


def _time_first_boards(folder: Path) -> tuple[dict[int, float], dict[int, float]]:
    """Seconds by agents, with all programs cached, and with none."""

    def given(agents: int) -> list[str]:
        kind = ["--size", "8", "--agents", str(agents), "--hole-ratio", "0.3", "--wait-ratio", "0.5"]
        return ["generate", *kind, "--count", "1", "--out", str(folder / "first.jsonl")]

    warm = {agents: statistics.median(_repeat_command(given(agents))[0]) for agents in TEAMS}
    cold = {
        agents: statistics.median(_run_command(given(agents), _make_empty_caches(folder))[0] for _ in range(REPEATS))
        for agents in TEAMS
    }
    return warm, cold


def _make_empty_caches(folder: Path) -> dict[str, str]:
    """The environment of a process that finds no compiled program."""
    return {name: tempfile.mkdtemp(dir=folder) for name in ("JAX_COMPILATION_CACHE_DIR", "NUMBA_CACHE_DIR")}


def _count_kinds(folder: Path) -> float:
    """Rows of all kinds by turns."""
    rows = [
        Row(f"{size}_{agents}_{place}", size, agents, grid, starts, goals)
        for size, agents in KINDS
        for place, (grid, starts, goals) in enumerate(_list_boards(size, agents))
    ]
    by_turns = [row for first in range(ROWS_A_KIND) for row in rows[first::ROWS_A_KIND]]
    write_rows(folder / "kinds.jsonl", by_turns)
    return statistics.median(
        _repeat_command(["solve", str(folder / "kinds.jsonl"), "--out", str(folder / "solved.jsonl")])[0]
    )


def _list_boards(size: int, agents: int) -> Iterator[tuple[list[str], list[tuple[int, int]], list[tuple[int, int]]]]:
    boards = random_boards(size, agents, ROWS_A_KIND)
    for holes, starts, goals in zip(boards.holes, boards.starts, boards.goals, strict=True):
        grid = ["".join("H" if hole else "." for hole in line) for line in holes.tolist()]
        yield grid, [(r, c) for r, c in starts.tolist()], [(r, c) for r, c in goals.tolist()]


def _measure_memory(folder: Path) -> dict[int, float]:
    """Of solving the last boards that were drawn, and more of them."""
    lines = (folder / "in.jsonl").read_bytes()
    (folder / "more.jsonl").write_bytes(lines * MORE)
    found = {}
    for name, rows in (("in", ROWS), ("more", MORE * ROWS)):
        found[rows] = max(
            _repeat_command(["solve", str(folder / f"{name}.jsonl"), "--out", str(folder / "solved.jsonl")], 1)[1]
        )
    return found


def _repeat_command(arguments: list[str], repeats: int = REPEATS) -> tuple[list[float], list[float]]:
    """Seconds and most MiB of memory of a command in processes of its own, after one that compiles."""
    seconds, mib = zip(*(_run_command(arguments, {}) for _ in range(repeats + 1)), strict=True)
    return list(seconds[1:]), list(mib[1:])


def _run_command(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "lakewright.experiments.cli", *arguments], env=os.environ | environment
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"lakewright {' '.join(arguments)} failed")
    return time.perf_counter() - begun, used.ru_maxrss / 1024


def format_table(bench: FilesBench) -> str:
    """The benchmark as Markdown."""
    head = ("work", "size", "form", "rows a second", "the core", "share", "by processor time")
    rates = [
        (
            rate.work,
            f"{rate.size}x{rate.size}",
            rate.form,
            f"{rate.rate:,.0f}",
            f"{rate.core:,.0f}",
            f"{rate.share:.2f}",
            f"{rate.processor:.2f}",
        )
        for rate in bench.rates
    ]
    single = [(f"first board of {agents} agents", f"{seconds:.1f} s") for agents, seconds in bench.first_board.items()]
    single += [
        (f"first board of {agents} agents, nothing compiled", f"{seconds:.1f} s")
        for agents, seconds in bench.cold_board.items()
    ]
    single.append((f"{len(KINDS)} kinds, {ROWS_A_KIND} rows each, solved", f"{bench.kinds:.1f} s"))
    single += [(f"most memory, {rows:,} rows solved", f"{mib:,.0f} MiB") for rows, mib in bench.peak_mib.items()]
    about = ", ".join(f"{name} {value}" for name, value in bench.machine.items())
    return "\n".join([about, "", *format_markdown(head, rates), "", *format_markdown(("what", "measured"), single)])
