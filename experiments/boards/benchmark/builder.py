"""The benchmark: a fixed set of certified boards with their prompts, to evaluate language models on.

    DIR/benchmark.jsonl  DIR/benchmark.parquet  DIR/manifest.json

The rows of a cell are saved in DIR/cells/ until all cells are done, so that a killed build resumes cell by cell.
"""

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import content_hash, prng, versions
from lakewright.core_jax.rows import fingerprint, read_all_as, write_rows
from lakewright.core_jax.support import listed, locked, read_config, write_json
from lakewright.experiments.boards.benchmark.cells import (
    BENCHMARK_SCHEMA,
    BenchmarkRow,
    Moved,
    draw_cell,
    find_moved_cell,
)
from lakewright.experiments.boards.benchmark.tiers import TIERS, Tier
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.executors.executor import Task, in_order
from lakewright.experiments.jobs.resumable.claims import Claim, writer_name

FORMAT = 1
NAME = "benchmark"
MANIFEST = "manifest.json"


class Request(msgspec.Struct, frozen=True):
    """The request that determines every byte of the rows: another request needs another folder."""

    format: int
    tier: str
    seed: int
    config_hash: str
    versions: dict[str, str]
    prng: str

    @classmethod
    def of(cls, name: str, tier: Tier, seed: int) -> "Request":
        """The request for a tier, with the versions of this machine."""
        return cls(FORMAT, name, seed, content_hash(tier), versions(), prng())


CLAIM = Claim("benchmark", "request.json", Request, FORMAT, "lakewright benchmark build")


class TeamCounts(msgspec.Struct, frozen=True):
    """The number of boards of one number of agents and size, and how many of them force a wait."""

    agents: int
    size: int
    boards: int
    wait_required: int


class BenchmarkFile(msgspec.Struct, frozen=True):
    """A file of the benchmark."""

    sha256: str
    bytes: int


class BenchmarkManifest(msgspec.Struct, frozen=True):
    """manifest.json, written last: if it exists the benchmark is complete."""

    request: Request
    config: Tier
    boards: int
    counts: list[TeamCounts]
    moved: list[Moved]
    files: dict[str, BenchmarkFile]


def build_benchmark(
    folder: Path,
    name: str,
    seed: int,
    on_progress: Callable[[int], object] = lambda boards: None,
    where: ExecutorChoice = HERE,
) -> BenchmarkManifest:
    """Builds the benchmark of a tier in `folder`, or resumes its build.

    Args:
        folder: The folder of its files.
        name: The tier.
        seed: Another seed gives other boards.
        on_progress: Gets the number of boards of each finished team.
        where: The executor that draws them.

    Raises InputError if the folder holds another benchmark, a file of it was altered, or a cell has no boards.
    """
    tier = TIERS[name]
    request = Request.of(name, tier, seed)
    with locked(folder):
        if (folder / MANIFEST).exists():
            manifest = read_config(folder / MANIFEST, BenchmarkManifest)
            CLAIM.refuse_other(folder / MANIFEST, manifest.request, request)
            _check_files(folder, manifest)
            on_progress(manifest.boards)
        else:
            rows = _draw_cells(folder / "cells", tier, request, where, on_progress)
            manifest = _write_manifest(folder, tier, request, rows, _write_parts(folder, rows))
        shutil.rmtree(folder / "cells", ignore_errors=True)
    return manifest


def read_benchmark(folder: Path) -> tuple[BenchmarkManifest, pa.Table]:
    """The manifest and the rows of a finished benchmark. Raises InputError if it is not one, or a file was changed."""
    if not (folder / MANIFEST).exists():
        remedy = f"build one by `lakewright benchmark build --out {folder}`"
        raise InputError(f"{folder}: no finished benchmark ({MANIFEST} is missing); {remedy}")
    manifest = read_config(folder / MANIFEST, BenchmarkManifest)
    _check_files(folder, manifest)
    return manifest, pq.read_table(folder / f"{NAME}.parquet", schema=BENCHMARK_SCHEMA)


def _draw_cells(
    parts: Path, tier: Tier, request: Request, where: ExecutorChoice, on_progress: Callable[[int], object]
) -> list[BenchmarkRow]:
    """The rows of all cells, drawn unless they are saved; one task has all cells that could share a board.

    parts: the folder of the cells. tier, request: say what to draw. where: the executor. on_progress: as in
    `build_benchmark`.
    """
    CLAIM.take_folder(parts, request)
    rows: list[BenchmarkRow] = []
    with where.open(Task("number of agents and size", spreads=True), parts) as executor:
        for drawn in in_order(executor, partial(_draw_team, parts.absolute(), tier, request.seed), tier.teams):
            on_progress(len(drawn))
            rows += drawn
    return rows


def _draw_team(parts: Path, tier: Tier, seed: int, team: tuple[int, int]) -> list[BenchmarkRow]:
    """The rows of the cells of one number of agents and size."""
    rows: list[BenchmarkRow] = []
    for cell in tier.cells():
        if (cell.agents, cell.size) == team:
            path = parts / f"{cell}.jsonl"
            if not path.exists():
                with listed(path, writer=writer_name()):  # other processes list the cells of their teams there
                    write_rows(path, draw_cell(cell, tier, seed, set(map(fingerprint, rows))), BENCHMARK_SCHEMA)
            rows += read_all_as(BenchmarkRow, path)
    return rows


def _write_parts(folder: Path, rows: list[BenchmarkRow]) -> list[Path]:
    paths = [folder / f"{NAME}{form}" for form in (".jsonl", ".parquet")]
    with listed(*paths):
        for path in paths:
            write_rows(path, rows, BENCHMARK_SCHEMA)
    return paths


def _write_manifest(
    folder: Path, tier: Tier, request: Request, rows: list[BenchmarkRow], files: list[Path]
) -> BenchmarkManifest:
    teams = Counter((row.agents, row.size) for row in rows)
    waits = Counter((row.agents, row.size) for row in rows if row.wait_required)
    manifest = BenchmarkManifest(
        request=request,
        config=tier,
        boards=len(rows),
        counts=[TeamCounts(*team, boards, waits[team]) for team, boards in teams.items()],
        moved=list(dict.fromkeys(moved for row in rows if (moved := find_moved_cell(row)))),
        files={path.name: _describe_file(path) for path in files},
    )
    with listed(folder / MANIFEST):
        write_json(folder / MANIFEST, manifest)
    return manifest


def _check_files(folder: Path, manifest: BenchmarkManifest) -> None:
    for name, file in manifest.files.items():
        if not (folder / name).exists() or _describe_file(folder / name) != file:
            remedy = f"remove {MANIFEST} to build it again"
            raise InputError(f"{folder / name}: differs from the file that {MANIFEST} lists; {remedy}")


def _describe_file(path: Path) -> BenchmarkFile:
    data = path.read_bytes()
    return BenchmarkFile(hashlib.sha256(data).hexdigest(), len(data))
