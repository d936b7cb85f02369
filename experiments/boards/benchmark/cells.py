"""The boards of one cell of the benchmark: as requested or, if such boards do not exist, the nearest ones."""

import hashlib
from collections import Counter
from collections.abc import Iterator

import msgspec
import pyarrow as pa

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.errors import InputError, TooRareError
from lakewright.core_jax.generator import generate
from lakewright.core_jax.rows import BENCHMARK_FIELDS, SCHEMA, Fingerprint, Row, board_of, fingerprint, rows_of
from lakewright.experiments.boards.benchmark.tiers import BenchmarkCell, Tier
from lakewright.policy.codecs import encode_prompt

DRAWS = 16  # of as many boards as are wanted, before a stratum counts as having too few different ones
BENCHMARK_SCHEMA = pa.schema([*SCHEMA, *BENCHMARK_FIELDS])


class BenchmarkRow(Row, frozen=True, kw_only=True):
    """A row with its prompt, the fields of the published rows, and the ratios of its cell.

    sample_id, num_agents: `id` and `agents` again. text: the prompt. hole_ratio (of `Row`), wait_ratio: the
    cell's. drawn_hole_ratio, drawn_wait_ratio: the nearest possible, with which its boards were drawn.
    """

    sample_id: str
    num_agents: int
    text: str
    wait_ratio: float
    drawn_hole_ratio: float
    drawn_wait_ratio: float


class Moved(msgspec.Struct, frozen=True):
    """A cell's boards of one wait ratio that do not exist as requested, and the boards drawn instead."""

    cell: str
    wait_ratio: float
    drawn_holes: int
    drawn_hole_ratio: float
    drawn_wait_ratio: float


def draw_cell(cell: BenchmarkCell, tier: Tier, seed: int, taken: set[Fingerprint]) -> list[BenchmarkRow]:
    """The rows of a cell, all of different boards.

    Args:
        cell: Size, agents and hole ratio of the boards.
        tier: Gives the wait ratios, and the number of boards of each.
        seed: Another seed gives other boards.
        taken: Boards that must not be among them.

    Raises InputError if not even an easier cell has enough boards.
    """
    rows: list[BenchmarkRow] = []
    taken = set(taken)
    for wait_ratio in tier.wait_ratios:
        config, drawn = _draw_nearest(cell, wait_ratio, tier.boards, seed, taken)
        for row in drawn:
            rows.append(_benchmark_row(row, f"{cell}_{len(rows):03d}", cell, wait_ratio, config))
        taken.update(map(fingerprint, drawn))
    return rows


def find_moved_cell(row: BenchmarkRow) -> Moved | None:
    """The cell that was drawn instead of the row's; None if it was drawn as requested."""
    holes = sum(line.count("H") for line in row.grid)
    asked = holes_of(row.size, row.agents, row.hole_ratio or 0.0)
    if (holes, row.drawn_wait_ratio) == (asked, row.wait_ratio):
        return None
    name = row.id.rpartition("_")[0]
    return Moved(name, row.wait_ratio, holes, row.drawn_hole_ratio, row.drawn_wait_ratio)


def _draw_nearest(
    cell: BenchmarkCell, wait_ratio: float, count: int, seed: int, taken: set[Fingerprint]
) -> tuple[EnvConfig, list[Row]]:
    """Boards of a cell and what they were drawn with: as requested or, if impossible, the nearest.

    The nearest has the fewest holes removed, and then the nearest share of forced waits, which is then 0 or 1.
    """
    refused = None
    for config in _list_candidates(cell, wait_ratio):
        try:
            return config, _draw_different(config, count, seed, f"{cell}_wr{wait_ratio:g}", taken)
        except TooRareError as error:
            refused = refused or error
    raise InputError(f"benchmark cell {cell}, wait ratio {wait_ratio:g}: {refused}")


def _list_candidates(cell: BenchmarkCell, wait_ratio: float) -> Iterator[EnvConfig]:
    wanted = holes_of(cell.size, cell.agents, cell.hole_ratio)
    room = cell.size**2 - 2 * cell.agents
    for holes in range(wanted, -1, -1):
        hole_ratio = cell.hole_ratio if holes == wanted else holes / room
        for share in sorted({wait_ratio, 0.0, 1.0}, key=lambda share: abs(share - wait_ratio)):
            try:
                yield EnvConfig.single(cell.size, cell.agents, hole_ratio, share)
            except ValueError as error:
                raise InputError(f"benchmark cell {cell}: {error}") from error


def _draw_different(config: EnvConfig, count: int, seed: int, stream: str, taken: set[Fingerprint]) -> list[Row]:
    """`count` different boards that are not `taken`, with the generator's share of forced waits.

    Raises TooRareError if there are too few.
    """
    rows: dict[Fingerprint, Row] = {}
    missing: Counter[bool | None] = Counter()
    for draw in range(DRAWS):
        drawn = rows_of(generate(config, _derive_seed(seed, stream, draw), count), config)
        missing = missing if draw else Counter(row.wait_required for row in drawn)
        for row in drawn:
            board = fingerprint(row)
            if missing[row.wait_required] and board not in rows and board not in taken:
                rows[board] = row
                missing[row.wait_required] -= 1
        if len(rows) == count:
            return list(rows.values())
    raise TooRareError(f"only {len(rows)} different boards in {DRAWS * count}; ask for fewer boards")


def _benchmark_row(row: Row, name: str, cell: BenchmarkCell, wait_ratio: float, config: EnvConfig) -> BenchmarkRow:
    drawn = config.sizes[cell.size]
    fields = msgspec.structs.asdict(row) | {"id": name, "hole_ratio": cell.hole_ratio}
    return BenchmarkRow(
        **fields,
        sample_id=name,
        num_agents=cell.agents,
        text=encode_prompt(board_of(row)),
        wait_ratio=wait_ratio,
        drawn_hole_ratio=round(drawn.hole_ratio, 4),
        drawn_wait_ratio=drawn.wait_ratio,
    )


def _derive_seed(seed: int, stream: str, draw: int) -> int:
    """A seed for every stream and draw: under one seed, similar configs would share their boards."""
    return int.from_bytes(hashlib.sha256(f"{seed} {stream} {draw}".encode()).digest()[:4])
