"""Summaries of the cells of a sweep: counts, rates and quantiles of their boards.

DuckDB reads the shards because it streams Parquet under a limit of memory. It only counts how many boards of a cell
have
each value of a statistic: few rows for any number of boards, from which everything else follows exactly.
"""

import re
from collections import defaultdict
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import wilson
from lakewright.core_jax.statistics import COLUMNS
from lakewright.core_jax.support import replacing, write_json
from lakewright.experiments.boards.sweep.folder import SweepFolder
from lakewright.experiments.boards.sweep.shards import Record
from lakewright.experiments.boards.sweep.spec import SweepCell
from lakewright.experiments.jobs.runtime.library_setup import load_duckdb

MEMORY = "1GiB"  # of DuckDB; the rest goes to the disk
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# What does or does not happen on a board; null where it cannot.
EVENTS = {
    "connected": "cost_bound IS NOT NULL",
    "solvable": "status = 'solvable'",
    "undecided": "status = 'undecided'",
    "solvable_if_connected": "CASE WHEN cost_bound IS NOT NULL THEN status = 'solvable' END",
    "wait_required": "wait_required",
    "shortest_paths_suffice": "cost_gap = 0",
    "first_paths_conflict": "vertex_conflicts + swap_conflicts > 0",
    "vertex_conflict": "vertex_conflicts > 0",
    "target_conflict": "target_conflicts > 0",
    "swap_conflict": "swap_conflicts > 0",
    "cardinal_conflict": "cardinal_conflicts > 0",
    "bound_certificate": "certificate = 'bound'",
}
QUANTITIES = tuple(
    name for name, (kind, _) in COLUMNS.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind)
)


class Rate(msgspec.Struct, frozen=True):
    """The frequency of an event: `count` of `of` boards, the share, and its 95 % interval (Wilson, 1927)."""

    count: int
    of: int
    rate: float | None
    low: float
    high: float


class Spread(msgspec.Struct, frozen=True):
    """A quantity over the `of` boards that have it: mean, largest value, and quantiles by LEVELS, which are values."""

    of: int
    mean: float
    quantiles: tuple[float, ...]
    largest: float


class CellSummary(msgspec.Struct, frozen=True):
    """A cell's finished shards.

    boards_per_second: the rate of one worker, from drawing to writing. acceptance: the share of attempts that
    had the stratum, None for free draws. rates: by EVENTS; quantities: by QUANTITIES that any board has.
    """

    cell: str
    size: int
    agents: int
    hole_ratio: float
    wait_ratio: float | None
    boards: int
    boards_per_second: float
    acceptance: float | None
    rates: dict[str, Rate]
    quantities: dict[str, Spread]


def summarize_sweep(sweep: SweepFolder) -> list[CellSummary]:
    """Writes cells.parquet, cells.json and values.parquet of the finished shards; cells without any are left out.

    values.parquet: how many boards of each cell have each value of a statistic, by wait_required. Raises InputError
    if no shard is finished, or one is damaged.
    """
    cells, finished = sweep.manifest().cells, sorted(sweep.finished())
    if not finished:
        raise InputError(f"{sweep.folder}: no shard is finished yet; run the sweep first")
    duckdb = load_duckdb()
    try:
        events, values = _count_events(sweep.files(), sweep.folder)
    except duckdb.Error as error:
        problem = str(error).splitlines()[0]
        raise InputError(
            f"{sweep.shards}: cannot be read ({problem}); remove the damaged shard and run the sweep again"
        ) from error
    records = defaultdict(list)
    for name in finished:
        record = sweep.record(name)
        records[record.cell].append(record)
    spreads = _read_spreads(values)
    summaries = [
        _summarize_cell(cell, records[name], events[name], spreads[name])
        for name, cell in cells.items()
        if name in records
    ]
    write_json(sweep.folder / "cells.json", summaries)
    for name, table in {"cells": _make_table(summaries), "values": values}.items():
        with replacing(sweep.folder / f"{name}.parquet") as beside:
            pq.write_table(table, beside)
    return summaries


def make_rate(count: int, of: int) -> Rate:
    """The share of boards on which something happens, with Wilson's interval."""
    return Rate(count, of, count / of if of else None, *wilson(count, of))


def find_quantiles(values: np.ndarray, counts: np.ndarray) -> tuple[float, ...]:
    """The LEVELS of ascending `values` with multiplicities `counts`: the least value that reaches each share."""
    up_to = np.cumsum(counts)
    places = np.searchsorted(up_to, np.asarray(LEVELS) * up_to[-1] - 1e-9)
    return tuple(float(value) for value in values[places])


def _count_events(files: list[Path], folder: Path) -> tuple[dict[str, dict[str, tuple[int, int]]], pa.Table]:
    """Of each cell and event how many boards it happens on and of how many, and the table of values."""
    settings = {"memory_limit": MEMORY, "temp_directory": str(folder / ".duckdb"), "preserve_insertion_order": "false"}
    with load_duckdb().connect(":memory:", config=settings) as database:
        database.read_parquet([str(file) for file in files]).create_view("boards")
        there = {name for name, *_ in database.sql("DESCRIBE boards").fetchall()}
        asked = {name: sql for name, sql in EVENTS.items() if _name_columns(sql) <= there}
        sums = [f"count_if({sql}), count({sql})" for sql in asked.values()]
        rows = database.sql(f"SELECT {', '.join(['cell', *sums])} FROM boards GROUP BY cell").fetchall()
        events = {cell: dict(zip(asked, zip(of[::2], of[1::2], strict=True), strict=True)) for cell, *of in rows}
        wait = "wait_required" if "wait_required" in there else "NULL::BOOLEAN"
        # One column after another, so that only the values of one column are in memory.
        parts = [
            database.sql(
                f"SELECT cell::VARCHAR AS cell, '{name}' AS statistic, {name}::DOUBLE AS value, "
                f"{wait} AS wait_required, count(*) AS boards FROM boards "
                f"WHERE {name} IS NOT NULL GROUP BY ALL ORDER BY ALL"
            ).to_arrow_table()
            for name in QUANTITIES
            if name in there
        ]
    return events, pa.concat_tables(parts)


def _name_columns(sql: str) -> set[str]:
    return {name for name in COLUMNS if re.search(rf"\b{name}\b", sql)}


def _read_spreads(values: pa.Table) -> dict[str, dict[str, Spread]]:
    found: dict[str, dict[str, Spread]] = defaultdict(dict)
    keys = ["cell", "statistic", "value"]
    pooled = values.group_by(keys).aggregate([("boards", "sum")]).sort_by([(key, "ascending") for key in keys])
    names = [pooled[key].to_pylist() for key in keys[:2]]
    value, boards = (pooled[name].to_numpy() for name in ("value", "boards_sum"))
    new = [place for place in range(len(value)) if not place or any(of[place] != of[place - 1] for of in names)]
    for begin, end in zip(new, [*new[1:], len(value)], strict=True):
        some, counts = value[begin:end], boards[begin:end]
        mean = float(some @ counts / counts.sum())
        found[names[0][begin]][names[1][begin]] = Spread(
            int(counts.sum()), mean, find_quantiles(some, counts), float(some[-1])
        )
    return found


def _summarize_cell(
    cell: SweepCell, records: list[Record], events: dict[str, tuple[int, int]], quantities: dict[str, Spread]
) -> CellSummary:
    boards = sum(record.count for record in records)
    strata = [stratum for record in records for stratum in record.acceptance]
    return CellSummary(
        cell=cell.name,
        size=cell.size,
        agents=cell.agents,
        hole_ratio=cell.hole_ratio,
        wait_ratio=cell.wait_ratio,
        boards=boards,
        boards_per_second=boards / sum(record.seconds for record in records),
        acceptance=sum(part.met for part in strata) / sum(part.drawn for part in strata) if strata else None,
        rates={name: make_rate(*counts) for name, counts in events.items()},
        quantities=quantities,
    )


def _make_table(summaries: list[CellSummary]) -> pa.Table:
    rows = [_flatten_summary(summary) for summary in summaries]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _flatten_summary(summary: CellSummary) -> dict[str, float | int | str | None]:
    """A row of cells.parquet, such as solvable, solvable_low, solvable_high; makespan_mean, makespan_q05 and so on."""
    row = {name: getattr(summary, name) for name in CellSummary.__struct_fields__[:-2]}
    for name, found in summary.rates.items():
        row |= {name: found.rate, f"{name}_of": found.of, f"{name}_low": found.low, f"{name}_high": found.high}
    for name, spread in summary.quantities.items():
        row |= {f"{name}_of": spread.of, f"{name}_mean": spread.mean, f"{name}_max": spread.largest}
        row |= {f"{name}_q{round(100 * level):02}": at for level, at in zip(LEVELS, spread.quantiles, strict=True)}
    return row
