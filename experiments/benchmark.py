"""The benchmark: a fixed set of certified boards with their prompts, to evaluate language models on.

    DIR/benchmark.jsonl  DIR/benchmark.parquet  DIR/manifest.json

The rows of a cell are kept in DIR/cells/ until all are there, so that a build which was killed goes on cell by cell.
"""

import dataclasses
import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import msgspec
import pyarrow as pa

from core_jax.config import EnvConfig, holes_of
from core_jax.decoding import read_config
from core_jax.errors import InputError, TooRareError
from core_jax.files import locked, write_atomically
from core_jax.formats import SCHEMA, Row, boards_of, read_rows, row_writer, rows_of, write_rows
from core_jax.generator import generate
from core_jax.manifest import content_hash, prng, versions
from policy.codecs.text import encode_prompt

FORMAT = 1
NAME = "benchmark"
MANIFEST = "manifest.json"
DRAWS = 16  # of as many boards as are wanted, before a stratum counts as too small for so many different ones


class Tier(msgspec.Struct, frozen=True):
    """What a benchmark is made of: `boards` for each pair of agents and size, each hole ratio and each wait ratio."""

    teams: tuple[tuple[int, int], ...]
    hole_ratios: tuple[float, ...]
    wait_ratios: tuple[float, ...]
    boards: int

    def cells(self) -> list["Cell"]:
        """Every cell, in the order of the file."""
        return [Cell(agents, size, ratio) for agents, size in self.teams for ratio in self.hole_ratios]

    @property
    def count(self) -> int:
        """How many boards there are."""
        return len(self.cells()) * len(self.wait_ratios) * self.boards


PAPER = Tier(
    teams=tuple((agents, size) for agents in (3, 4, 5) for size in range(max(3, agents), 11)),
    hole_ratios=(0.1, 0.2, 0.3, 0.4, 0.5),
    wait_ratios=(0.25, 0.5, 0.75),
    boards=10,
)
# Larger boards, then larger teams.
HARD = Tier(
    teams=((3, 12), (3, 14), (3, 16), (4, 12), (4, 14), (4, 16), (5, 12), (6, 8), (6, 10), (7, 8), (7, 10), (8, 8)),
    hole_ratios=(0.1, 0.3, 0.5),
    wait_ratios=(0.25, 0.75),
    boards=10,
)
TIERS = {"paper": PAPER, "hard": HARD}


@dataclasses.dataclass(frozen=True)
class Cell:
    """The boards of one number of agents, size and hole ratio, numbered through all wait ratios."""

    agents: int
    size: int
    hole_ratio: float

    def __str__(self) -> str:
        return f"{self.agents}ag_{self.size}x{self.size}_hr{self.hole_ratio:g}"


class BenchmarkRow(Row, frozen=True, kw_only=True):
    """A row with its prompt, the names of the published rows, and where it belongs.

    sample_id, num_agents: `id` and `agents` again. text: the prompt. hole_ratio (of `Row`), wait_ratio: those of the
    cell. drawn_hole_ratio, drawn_wait_ratio: what its boards were drawn with, the nearest that can be had.
    """

    sample_id: str
    num_agents: int
    text: str
    wait_ratio: float
    drawn_hole_ratio: float
    drawn_wait_ratio: float


BENCHMARK_SCHEMA = pa.schema(
    [
        *SCHEMA,
        ("sample_id", pa.string()),
        ("num_agents", pa.int32()),
        ("text", pa.string()),
        ("wait_ratio", pa.float64()),
        ("drawn_hole_ratio", pa.float64()),
        ("drawn_wait_ratio", pa.float64()),
    ]
)


class Request(msgspec.Struct, frozen=True):
    """What decides every byte of the rows: another one needs another folder."""

    format: int
    tier: str
    seed: int
    config_hash: str
    versions: dict[str, str]
    prng: str

    @classmethod
    def of(cls, name: str, tier: Tier, seed: int) -> "Request":
        """The request for a tier, on this machine's versions."""
        return cls(FORMAT, name, seed, content_hash(tier), versions(), prng())


class Moved(msgspec.Struct, frozen=True):
    """A cell's boards of one wait ratio that cannot be had as asked, and what they were drawn with."""

    cell: str
    wait_ratio: float
    drawn_holes: int
    drawn_hole_ratio: float
    drawn_wait_ratio: float


class TeamCounts(msgspec.Struct, frozen=True):
    """How many boards one number of agents has on one size, and on how many an optimal plan must wait."""

    agents: int
    size: int
    boards: int
    wait_required: int


class File(msgspec.Struct, frozen=True):
    """A file of the benchmark."""

    sha256: str
    bytes: int


class Manifest(msgspec.Struct, frozen=True):
    """manifest.json, written last: the benchmark is whole where it is there."""

    request: Request
    config: Tier
    boards: int
    counts: list[TeamCounts]
    moved: list[Moved]
    files: dict[str, File]


def build(folder: Path, name: str, seed: int, on_progress: Callable[[int], object] = lambda boards: None) -> Manifest:
    """Builds the benchmark of a tier in `folder`, or goes on building it.

    `on_progress` is told of boards as they are there. Raises InputError where the folder holds another benchmark, a
    file of it was altered, or a cell has no boards at all.
    """
    tier = TIERS[name]
    request = Request.of(name, tier, seed)
    with locked(folder):
        if (folder / MANIFEST).exists():
            manifest = read_config(folder / MANIFEST, Manifest)
            _check_same(folder / MANIFEST, manifest.request, request)
            _check_files(folder, manifest)
            on_progress(manifest.boards)
        else:
            rows = [row for cell in _rows(folder / "cells", tier, request, on_progress) for row in cell]
            manifest = _write_manifest(folder, tier, request, rows, _write(folder, rows))
        shutil.rmtree(folder / "cells", ignore_errors=True)
    return manifest


def draw_cell(cell: Cell, tier: Tier, seed: int, taken: set[str]) -> list[BenchmarkRow]:
    """The rows of a cell, no two of one board and none of a board that is `taken`.

    Raises InputError where not even an easier cell can be had.
    """
    rows: list[BenchmarkRow] = []
    taken = set(taken)
    for wait_ratio in tier.wait_ratios:
        config, drawn = _nearest(cell, wait_ratio, tier.boards, seed, taken)
        for row in drawn:
            rows.append(_benchmark_row(row, f"{cell}_{len(rows):03d}", cell, wait_ratio, config))
        taken.update(map(_fingerprint, drawn))
    return rows


def _rows(
    parts: Path, tier: Tier, request: Request, on_progress: Callable[[int], object]
) -> Iterator[list[BenchmarkRow]]:
    """The rows of each cell, read where it is there, else drawn."""
    if (parts / "request.json").exists():
        _check_same(parts / "request.json", read_config(parts / "request.json", Request), request)
    _write_json(parts / "request.json", request)
    taken: set[str] = set()
    for cell in tier.cells():
        path = parts / f"{cell}.jsonl"
        if not path.exists():
            write_rows(path, draw_cell(cell, tier, request.seed, taken))
        rows = _read(path)
        taken.update(map(_fingerprint, rows))
        on_progress(len(rows))
        yield rows


def _nearest(cell: Cell, wait_ratio: float, count: int, seed: int, taken: set[str]) -> tuple[EnvConfig, list[Row]]:
    """Boards of a cell and what they were drawn with: as asked or, where that cannot be, the nearest that can.

    The nearest has the fewest holes removed, and then the nearest share of forced waits: all or none of one kind.
    """
    refused = None
    for config in _candidates(cell, wait_ratio):
        try:
            return config, _different(config, count, seed, f"{cell}_wr{wait_ratio:g}", taken)
        except TooRareError as error:
            refused = refused or error
    raise InputError(f"benchmark cell {cell}, wait ratio {wait_ratio:g}: {refused}")


def _candidates(cell: Cell, wait_ratio: float) -> Iterator[EnvConfig]:
    wanted = holes_of(cell.size, cell.agents, cell.hole_ratio)
    room = cell.size**2 - 2 * cell.agents
    for holes in range(wanted, -1, -1):
        hole_ratio = cell.hole_ratio if holes == wanted else holes / room
        for share in sorted({wait_ratio, 0.0, 1.0}, key=lambda share: abs(share - wait_ratio)):
            try:
                yield EnvConfig.single(cell.size, cell.agents, hole_ratio, share)
            except ValueError as error:
                raise InputError(f"benchmark cell {cell}: {error}") from error


def _different(config: EnvConfig, count: int, seed: int, stream: str, taken: set[str]) -> list[Row]:
    """`count` boards of which no two are the same and none is taken, with the generator's share of forced waits.

    Raises TooRareError where there are too few.
    """
    rows: dict[str, Row] = {}
    missing: Counter[bool | None] = Counter()
    for draw in range(DRAWS):
        drawn = rows_of(generate(config, _seed(seed, stream, draw), count), config)
        missing = missing if draw else Counter(row.wait_required for row in drawn)
        for row in drawn:
            board = _fingerprint(row)
            if missing[row.wait_required] and board not in rows and board not in taken:
                rows[board] = row
                missing[row.wait_required] -= 1
        if len(rows) == count:
            return list(rows.values())
    raise TooRareError(f"only {len(rows)} different boards in {DRAWS * count}; ask for fewer boards")


def _benchmark_row(row: Row, name: str, cell: Cell, wait_ratio: float, config: EnvConfig) -> BenchmarkRow:
    board = jax.tree.map(lambda field: field[0], boards_of([row]))
    drawn = config.sizes[cell.size]
    fields = msgspec.structs.asdict(row) | {"id": name, "hole_ratio": cell.hole_ratio}
    return BenchmarkRow(
        **fields,
        sample_id=name,
        num_agents=cell.agents,
        text=encode_prompt(board),
        wait_ratio=wait_ratio,
        drawn_hole_ratio=round(drawn.hole_ratio, 4),
        drawn_wait_ratio=drawn.wait_ratio,
    )


def _write(folder: Path, rows: list[BenchmarkRow]) -> list[Path]:
    paths = [folder / f"{NAME}{form}" for form in (".jsonl", ".parquet")]
    for path in paths:
        with row_writer(path, BENCHMARK_SCHEMA) as write:
            write(rows)
    return paths


def _write_manifest(
    folder: Path, tier: Tier, request: Request, rows: list[BenchmarkRow], files: list[Path]
) -> Manifest:
    teams = Counter((row.agents, row.size) for row in rows)
    waits = Counter((row.agents, row.size) for row in rows if row.wait_required)
    manifest = Manifest(
        request=request,
        config=tier,
        boards=len(rows),
        counts=[TeamCounts(*team, boards, waits[team]) for team, boards in teams.items()],
        moved=list(dict.fromkeys(moved for row in rows if (moved := _moved(row)))),
        files={path.name: _file(path) for path in files},
    )
    _write_json(folder / MANIFEST, manifest)
    return manifest


def _moved(row: BenchmarkRow) -> Moved | None:
    holes = sum(line.count("H") for line in row.grid)
    asked = holes_of(row.size, row.agents, row.hole_ratio or 0.0)
    if (holes, row.drawn_wait_ratio) == (asked, row.wait_ratio):
        return None
    name = row.id.rpartition("_")[0]
    return Moved(name, row.wait_ratio, holes, row.drawn_hole_ratio, row.drawn_wait_ratio)


def _check_same(path: Path, there: Request, here: Request) -> None:
    for name in Request.__struct_fields__:
        found, wanted = getattr(there, name), getattr(here, name)
        if found != wanted:
            raise InputError(f"{path}: {name} is {found!r} there and {wanted!r} now; choose another folder")


def _check_files(folder: Path, manifest: Manifest) -> None:
    for name, file in manifest.files.items():
        if not (folder / name).exists() or _file(folder / name) != file:
            remedy = f"remove {MANIFEST} to build it again"
            raise InputError(f"{folder / name}: is not the file that {MANIFEST} lists; {remedy}")


def _seed(seed: int, stream: str, draw: int) -> int:
    """A seed of its own for every stream and draw: like configs under one seed would share their boards."""
    return int.from_bytes(hashlib.sha256(f"{seed} {stream} {draw}".encode()).digest()[:4])


def _fingerprint(row: Row) -> str:
    """What two rows of the same board share."""
    return f"{row.grid} {row.starts} {row.goals}"


def _read(path: Path) -> list[BenchmarkRow]:
    def stop(error: InputError) -> None:
        raise error

    return [row for chunk in read_rows(path, BenchmarkRow, stop) for row in chunk]


def _file(path: Path) -> File:
    data = path.read_bytes()
    return File(hashlib.sha256(data).hexdigest(), len(data))


def _write_json(path: Path, value: Any) -> None:
    write_atomically(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
