"""A shard of a sweep: its boards drawn, labelled, measured and written as columns."""

import hashlib
import os
import time
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import Acceptance, check_reachable, content_hash, draw_free, generate
from lakewright.core_jax.solver import label_boards, solve
from lakewright.core_jax.statistics import COLUMNS, features, table
from lakewright.core_jax.support import digest_of, on_gpu, replacing, write_atomically
from lakewright.core_jax.types import Board, Labels
from lakewright.experiments.boards.sweep.spec import Shard, SweepCell, SweepSpec, shard_name
from lakewright.experiments.jobs.resumable.claims import writer_name

REMEDY = "remove both files of the shard, and run the sweep again"
# Columns that say how a board was solved, and by which plan; without them labels alone will do.
OF_SOLVER = {"certificate", "plan_length", "plan_waits"}
KEYS = ["cell", "size", "agents", "hole_ratio", "wait_ratio", "index"]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """SHARD.json, next to a shard's file and written after it, which makes the shard count.

    seconds: how long it took. finished: when, in seconds since 1970. bytes: the size of its file. acceptance: for
    strata.
    file: the SHA-256 of its file. sha256: digest of this record and the sweep's spec, see `seal_record`. Records of
    earlier versions have neither.
    """

    cell: str
    first: int
    count: int
    seconds: float
    finished: float
    bytes: int
    acceptance: list[Acceptance] = []
    file: str = ""
    sha256: str = ""

    @property
    def name(self) -> str:
        """The name of its files, without their endings."""
        return shard_name(self.cell, self.first, self.count)


def seal_record(record: Record, spec_hash: str) -> Record:
    """The record with its SHA-256. spec_hash: hash of the sweep's spec, so that no other sweep accepts the record."""
    bare = msgspec.structs.replace(record, sha256="")
    digest = hashlib.sha256(spec_hash.encode() + msgspec.json.encode(bare)).hexdigest()
    return msgspec.structs.replace(record, sha256=digest)


def make_shard(folder: Path, spec: SweepSpec, shard: Shard) -> Record:
    """Makes a shard's file and its record in `folder`; the data depend on the shard alone."""
    begun = time.monotonic()
    measured, acceptance = measure(shard, spec.columns or tuple(COLUMNS))
    table = table_of(shard, measured)
    path = folder / f"{shard.name}.parquet"
    written = _write_table(path, table)
    seconds = time.monotonic() - begun
    record = Record(
        shard.cell.name, shard.first, shard.count, seconds, time.time(), written, acceptance, digest_of(path)
    )
    record = seal_record(record, content_hash(spec))
    write_atomically(folder / f"{shard.name}.json", msgspec.json.encode(record), writer_name())
    return record


def check_file(path: Path, record: Record) -> Path:
    """The path of a shard's file. Raises InputError if it is not the one that its record was written for."""
    if record.file and digest_of(path) != record.file:
        raise InputError(
            f"{path}: was changed after it was written: its SHA-256 differs from {path.stem}.json; {REMEDY}"
        )
    return path


def measure(shard: Shard, columns: tuple[str, ...]) -> tuple[dict[str, np.ndarray], list[Acceptance]]:
    """The statistics of the boards of a shard, and the acceptance of strata."""
    cell = shard.cell
    if cell.wait_ratio is None and cell.agents == 2 and on_gpu():
        from lakewright.core_jax.statistics import measure_draws  # programs that a processor does without

        return measure_draws(cell.size, cell.holes, cell.seed, shard.first, shard.count, columns), []
    if cell.wait_ratio is None and not OF_SOLVER & set(columns):
        boards = draw_boards(shard)
        return features(boards, label_boards(boards), columns), []
    boards, labels, acceptance = draw(shard)
    return features(boards, labels, columns), acceptance


def draw(shard: Shard) -> tuple[Board, Labels, list[Acceptance]]:
    """The boards of a shard and their labels, with leading axis `count`, and the acceptance of strata."""
    cell = shard.cell
    if cell.wait_ratio is None:
        boards = draw_boards(shard)
        return boards, solve(boards), []
    batch = generate(cell.config, cell.seed, shard.count, first=shard.first)[cell.size]
    return batch.boards, batch.labels, list(batch.acceptance)


def draw_boards(shard: Shard) -> Board:
    """The boards of a shard of free draws."""
    cell = shard.cell
    return draw_free(cell.size, cell.agents, cell.holes, cell.seed, shard.first, shard.count)


def table_of(shard: Shard, measured: dict[str, np.ndarray]) -> pa.Table:
    """One row for each board: its cell, its index, and its statistics."""
    cell, count = shard.cell, shard.count
    of_cell = {
        "cell": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), [cell.name]),
        "size": pa.array(np.full(count, cell.size, np.int8)),
        "agents": pa.array(np.full(count, cell.agents, np.int8)),
        "hole_ratio": pa.array(np.full(count, cell.hole_ratio)),
        "wait_ratio": pa.repeat(pa.scalar(cell.wait_ratio, pa.float64()), count),
        "index": pa.array(np.arange(shard.first, shard.first + count)),
    }
    found = table(measured)
    fields = [pa.field(name, array.type) for name, array in of_cell.items()]
    return pa.table([*of_cell.values(), *found.columns], schema=pa.schema([*fields, *found.schema]))


def check_cell(cell: SweepCell) -> None:
    """Raises InputError, naming the cell, if its strata are too rare to be drawn."""
    try:
        check_reachable(cell.config, cell.seed)
    except InputError as error:
        raise InputError(f"cell {cell.name} is empty: {error}") from error


def _write_table(path: Path, table: pa.Table) -> int:
    """Writes the table, synchronized to the disk before the file gets its name; returns its size in bytes."""
    with replacing(path, writer_name()) as beside:
        with beside.open("wb") as sink:
            pq.write_table(
                table,
                sink,
                compression="zstd",
                # For columns that are never filtered by value, and for unique numbers, these cost a third of the time.
                write_statistics=KEYS,
                use_dictionary=[name for name in table.column_names if name != "index"],
                column_encoding={"index": "DELTA_BINARY_PACKED"},
            )
            sink.flush()
            os.fsync(sink.fileno())
        return beside.stat().st_size
