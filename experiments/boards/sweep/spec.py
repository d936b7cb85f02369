"""The specification of a sweep: the axes of its cells, and how many boards of each."""

import hashlib
import itertools
from pathlib import Path
from typing import Annotated

import msgspec
import psutil

from lakewright.core_jax.config import MAX_AGENTS, MAX_HOLE_RATIO, MAX_SIZE, MIN_SIZE, EnvConfig, holes_of
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import MOST_BOARDS
from lakewright.core_jax.solver import memory_needed
from lakewright.core_jax.statistics import COLUMNS
from lakewright.core_jax.support import Count, Natural, Share, convert, first_repeated, read_config, read_raw
from lakewright.experiments.preset_files import FOLDER

WORKER_BYTES = 1 << 29  # measured by `python -m tests.campaigns sweeps`
MOST_SHARDS = 1 << 20  # each is a file, and all are listed
ShardSize = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]  # a shard lies in memory
SizeList = Annotated[tuple[Annotated[int, msgspec.Meta(ge=MIN_SIZE, le=MAX_SIZE)], ...], msgspec.Meta(min_length=1)]
Agents = Annotated[tuple[Annotated[int, msgspec.Meta(ge=1, le=MAX_AGENTS)], ...], msgspec.Meta(min_length=1)]
Shares = Annotated[tuple[Share, ...], msgspec.Meta(min_length=1)]


class SweepCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of board: free draws if `wait_ratio` is None, else boards of the generator's strata.

    shard: boards in a shard. seed: a seed for this cell alone, so that cells are independent even if they have the same
    number of holes.
    """

    size: int
    agents: int
    hole_ratio: float
    wait_ratio: float | None
    boards: int
    shard: int
    seed: int

    @property
    def name(self) -> str:
        """Such as 2ag_8x8_hr0.30_free or 2ag_8x8_hr0.30_wr0.50."""
        draw = "free" if self.wait_ratio is None else f"wr{_format_ratio(self.wait_ratio)}"
        return f"{self.agents}ag_{self.size}x{self.size}_hr{_format_ratio(self.hole_ratio)}_{draw}"

    @property
    def holes(self) -> int:
        """The number of holes on each board."""
        return holes_of(self.size, self.agents, self.hole_ratio)

    @property
    def config(self) -> EnvConfig:
        """The config that the generator draws from; only of strata."""
        assert self.wait_ratio is not None
        return EnvConfig.single(self.size, self.agents, self.hole_ratio, self.wait_ratio)


class Shard(msgspec.Struct, frozen=True):
    """The boards first .. first + count - 1 of a cell: one file."""

    cell: SweepCell
    first: int
    count: int

    @property
    def name(self) -> str:
        """Such as 2ag_8x8_hr0.30_free_0000016384_16384."""
        return shard_name(self.cell.name, self.first, self.count)

    def __str__(self) -> str:
        return f"shard {self.name}"


class SweepSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grid of cells: every size with every number of agents, hole ratio and, if given, wait ratio.

    Without wait ratios boards are free draws: uniform, solvable or not. boards, shard: the boards in a cell, and in a
    shard, both one number or one for each number of agents. columns: the columns of
    `lakewright.core_jax.statistics.board_features.COLUMNS` that are saved; empty for all.
    """

    sizes: SizeList
    agents: Agents
    hole_ratios: Shares
    boards: Count | dict[int, Count]
    wait_ratios: Shares | None = None
    shard: ShardSize | dict[int, ShardSize] = 1 << 14
    seed: Natural = 0
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for axis in ("sizes", "agents", "hole_ratios", "wait_ratios", "columns"):
            values = getattr(self, axis) or ()
            if (twice := first_repeated(values)) is not None:
                raise ValueError(f"{axis} lists {twice!r} twice; list it once")
        for name in ("boards", "shard"):
            given = getattr(self, name)
            if isinstance(given, dict) and (differing := set(given) ^ set(self.agents)):
                raise ValueError(
                    f"{name} and agents must list the same numbers of agents; only one of them lists {min(differing)}"
                )
        if unknown := [name for name in self.columns if name not in COLUMNS]:
            raise ValueError(f"columns: {unknown[0]!r:.60} is not a statistic; choose from {', '.join(COLUMNS)}")
        cells = self.cells()
        for cell in cells:
            _check_cell(cell)
        if (shards := sum(-(-cell.boards // cell.shard) for cell in cells)) > MOST_SHARDS:
            raise ValueError(
                f"shard: the boards make {shards} shards; choose larger shards, {MOST_SHARDS} at most in all"
            )

    def cells(self) -> list[SweepCell]:
        """All cells, those with the slowest boards first, so that nothing slow is left for the end."""
        waits = self.wait_ratios or (None,)
        axes = itertools.product(self.agents, self.sizes, self.hole_ratios, waits)
        return sorted((self._cell(*values) for values in axes), key=lambda cell: (-cell.agents, -cell.size))

    def shards(self) -> list[Shard]:
        """All shards, a cell's in order."""
        return [
            Shard(cell, first, min(cell.shard, cell.boards - first))
            for cell in self.cells()
            for first in range(0, cell.boards, cell.shard)
        ]

    def _cell(self, agents: int, size: int, hole_ratio: float, wait_ratio: float | None) -> SweepCell:
        boards, shard = (given[agents] if isinstance(given, dict) else given for given in (self.boards, self.shard))
        cell = SweepCell(size, agents, hole_ratio, wait_ratio, boards, shard, 0)
        digest = hashlib.sha256(f"{self.seed}/{cell.name}".encode()).digest()
        return msgspec.structs.replace(cell, seed=int.from_bytes(digest[:4], "big"))


def shard_name(cell: str, first: int, count: int) -> str:
    """The name of a shard's files; a cell's files sort in order."""
    return f"{cell}_{first:010d}_{count}"


def read_spec(path: Path) -> SweepSpec:
    """The sweep of a TOML (or JSON) file. Raises InputError naming file, field, value and remedy."""
    return read_config(path, SweepSpec)


def choose_spec(path: Path | None, preset: str | None, boards: int | None) -> SweepSpec:
    """The sweep of a file, or of a preset, or that with another number of boards of each cell.

    Raises InputError unless one of file and preset is named, and as `read_spec`.
    """
    if (path is None) == (preset is None):
        raise InputError(
            f"a sweep comes from a file or from a preset, but {'none' if path is None else 'both'} is named; give one"
        )
    path = path or FOLDER / "sweeps" / f"{preset}.toml"
    if boards is None:
        return read_spec(path)
    return convert(read_raw(path) | {"boards": boards}, SweepSpec, f"{path} with --boards")


def count_memory(spec: SweepSpec) -> int:
    """The bytes that a worker takes: its libraries and boards, and the solver's tables of the largest cell."""
    return WORKER_BYTES + max(memory_needed(cell.size, cell.agents) for cell in spec.cells())


def check_sweep_memory(spec: SweepSpec, workers: int) -> None:
    """Raises InputError if the memory of this machine does not hold the boards of all workers."""
    available = psutil.virtual_memory().total
    for cell in spec.cells():
        needed = memory_needed(cell.size, cell.agents)
        if needed * workers > available:
            at_most = available // needed
            remedy = f"use --workers {at_most}" if at_most else f"leave out size {cell.size} or {cell.agents} agents"
            raise InputError(
                f"cell {cell.name}: {workers} workers take about {workers * needed / 2**30:.1f} GiB, and this machine "
                f"has {available / 2**30:.1f} GiB; {remedy}"
            )


def _check_cell(cell: SweepCell) -> None:
    if cell.size**2 < 2 * cell.agents:
        raise ValueError(
            f"cell {cell.name}: {cell.size**2} cells cannot hold the starts and goals of {cell.agents} agents; "
            f"leave out size {cell.size} or {cell.agents} agents"
        )
    if cell.boards > MOST_BOARDS:
        raise ValueError(f"cell {cell.name}: boards is {cell.boards}; choose at most {MOST_BOARDS}")
    if cell.wait_ratio is not None and cell.hole_ratio > MAX_HOLE_RATIO:
        raise ValueError(
            f"cell {cell.name}: hole_ratio is {cell.hole_ratio:g}; choose 0 to {MAX_HOLE_RATIO}, or leave out "
            "wait_ratios: free draws may have more"
        )
    if cell.wait_ratio and (cell.agents == 1):
        raise ValueError(f"cell {cell.name} is empty: one agent never has to wait; leave out 1 agent or set 0")


def _format_ratio(value: float) -> str:
    return f"{value:.2f}" if round(value, 2) == value else repr(value)
