"""Rows in files, as lines of JSONL or rows of Parquet, and as arrays."""

import contextlib
import dataclasses
import functools
import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core_jax.config import EnvConfig
from core_jax.errors import InputError
from core_jax.generator import Batch
from core_jax.rows.columns import records_of, table_of
from core_jax.rows.row import BENCHMARK_COLUMNS, SCHEMA, Row
from core_jax.support import convert, replacing
from core_jax.types import (
    CERTIFICATE_NAMES,
    LETTERS,
    MOVES,
    PAD,
    STATUS_NAMES,
    WAIT,
    Board,
    Certificate,
    Labels,
    Status,
)

# What is read of a file at once, and never less than one row.
CHUNK_BYTES, CHUNK_ROWS = 1 << 18, 512
R = TypeVar("R", bound=msgspec.Struct)


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a file as they lie there, not decoded yet: cheap to read and to skip.

    first: the number of the first line, or row of Parquet, from 1. Good and bad ones count, blank lines too.
    """

    path: Path
    first: int
    raw: list[bytes] | pa.RecordBatch

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def nbytes(self) -> int:
        """The size of the rows in memory, as they are."""
        return sum(map(len, self.raw)) if isinstance(self.raw, list) else self.raw.nbytes


def read_rows(
    path: str | Path,
    kind: type[R],
    on_error: Callable[[InputError], None],
    check: Callable[[R], object] = lambda row: None,
) -> Iterator[list[R]]:
    """Yields the rows of a `.jsonl` or `.parquet` file in chunks.

    A bad row, or one on which `check` raises ValueError, is left out and told to `on_error` with its line (from 1).
    Raises InputError where the file itself cannot be read.
    """
    for chunk in read_chunks(path):
        yield list(decode(chunk, kind, on_error, check))


def read_chunks(path: str | Path, skip: int = 0) -> Iterator[Chunk]:
    """Yields what follows the first `skip` rows of a file. Raises InputError where it cannot be read."""
    path = Path(path)
    return _parquet_chunks(path, skip) if ending(path) == ".parquet" else _jsonl_chunks(path, skip)


def decode(
    chunk: Chunk,
    kind: type[R],
    on_error: Callable[[InputError], None],
    check: Callable[[R], object] = lambda row: None,
) -> Iterator[R]:
    """Yields the good rows of a chunk; the others are told to `on_error`, as in `read_rows`."""
    mark = ":" if isinstance(chunk.raw, list) else ": row "
    quickly: Callable[[Any], R] = functools.partial(msgspec.convert, type=kind)
    records: Iterable[Any] = chunk.raw
    if isinstance(chunk.raw, list):
        quickly = msgspec.json.Decoder(kind).decode
    else:
        with _parquet_errors(chunk.path):
            records = records_of(chunk.raw)
    for number, raw in enumerate(records, chunk.first):
        try:
            row = quickly(raw)
        except _REFUSED:
            if isinstance(raw, bytes) and not raw.strip():
                continue
            try:
                row = _carefully(raw, kind, f"{chunk.path}{mark}{number}")
            except InputError as error:
                on_error(error)
                continue
        try:
            check(row)
        except ValueError as error:
            on_error(InputError(f"{chunk.path}{mark}{number}: {error}"))
        else:
            yield row


_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _carefully(raw: Any, kind: type[R], place: str) -> R:
    """What a record holds, read field by field for an error that names place, field, value and remedy."""
    if isinstance(raw, bytes):
        try:
            raw = msgspec.json.decode(raw)
        except _REFUSED as error:
            raise InputError(f"{place}: not JSON ({error}); one object a line") from error
    if isinstance(raw, dict) and issubclass(kind, Row):
        passed_over = BENCHMARK_COLUMNS.difference(kind.__struct_fields__)
        raw = {name: value for name, value in raw.items() if name not in passed_over}
    return convert(raw, kind, place)


def read_all(path: str | Path) -> list[Row]:
    """All rows of a file. Raises InputError at the first bad one."""

    def stop(error: InputError) -> None:
        raise error

    return [row for chunk in read_rows(path, Row, stop) for row in chunk]


@contextlib.contextmanager
def row_writer(path: str | Path, schema: pa.Schema = SCHEMA) -> Iterator[Callable[[Iterable[msgspec.Struct]], None]]:
    """Yields a function that appends rows; the file is there, whole, once the block has ended well."""
    form = ending(path)
    with replacing(path) as beside:
        if form == ".parquet":
            with pq.ParquetWriter(beside, schema) as parquet:
                yield lambda rows: parquet.write_table(table_of(list(rows), schema))
        else:
            encoder = msgspec.json.Encoder()
            with open(beside, "wb") as lines:

                def write_lines(rows: Iterable[msgspec.Struct]) -> None:
                    lines.write(encoder.encode_lines(rows))

                yield write_lines


def write_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """Writes rows to a `.jsonl` or `.parquet` file, whole or not at all."""
    with row_writer(path) as write:
        iterator = iter(rows)
        while chunk := list(itertools.islice(iterator, CHUNK_ROWS)):
            write(chunk)


def join_files(paths: Iterable[Path], path: Path, schema: pa.Schema = SCHEMA) -> None:
    """Writes the rows of some files, all of the ending of `path`, into one, whole or not at all; each file in turn."""
    with replacing(path) as beside:
        if ending(path) == ".parquet":
            with pq.ParquetWriter(beside, schema) as parquet:
                for part in paths:
                    parquet.write_table(pq.read_table(part, schema=schema))
        else:
            with open(beside, "wb") as whole:
                for part in paths:
                    with open(part, "rb") as lines:
                        shutil.copyfileobj(lines, whole, 1 << 20)


def ending(path: str | Path) -> str:
    """`.jsonl` or `.parquet`; raises InputError on any other ending."""
    form = Path(path).suffix
    if form not in (".jsonl", ".parquet"):
        raise InputError(f"{path}: the ending {form or '(none)'} is no known format; use .jsonl or .parquet")
    return form


def boards_of(rows: Sequence[Row]) -> Board:
    """The boards of rows of one size and number of agents: a `Board` of numpy arrays with leading axis B."""
    size, agents = rows[0].size, rows[0].agents
    letters = "".join(itertools.chain.from_iterable(row.grid for row in rows)).encode()
    holes = (np.frombuffer(letters, np.uint8) == ord("H")).reshape(len(rows), size, size)

    def cells(each: Iterable[list[tuple[int, int]]]) -> np.ndarray:
        numbers = itertools.chain.from_iterable(itertools.chain.from_iterable(each))
        return np.fromiter(numbers, np.int32, len(rows) * agents * 2).reshape(len(rows), agents, 2)

    starts, goals = cells(row.starts for row in rows), cells(row.goals for row in rows)
    return Board(holes, starts, goals)  # type: ignore[arg-type]


def moves_of(plans: Sequence[list[str]], horizon: int) -> np.ndarray:
    """Plans for one number of agents to int8 [B, K, horizon], padded with PAD; `?` is a JUMP, as `plans_of` writes it.

    Raises ValueError on an unknown move.
    """
    letters = "".join(letters.ljust(horizon) for plan in plans for letters in plan).encode("ascii")
    codes = _CODES[np.frombuffer(letters, np.uint8)].reshape(len(plans), len(plans[0]), horizon)
    if codes.min(initial=0) < PAD:
        raise ValueError(f"a plan has a move that is none of {' '.join(MOVES)}")
    return codes


def plan_of(moves: np.ndarray) -> list[str]:
    """Moves int8 [K, T] to one string an agent, all as long as the longest: who is done waits."""
    return plans_of(moves[None])[0]


def plans_of(moves: np.ndarray) -> list[list[str]]:
    """Moves int8 [B, K, T] to the plan of each board, as `plan_of`."""
    boards, agents, steps = moves.shape
    letters = _LETTERS[moves].tobytes().decode()  # PAD, which is -1, takes the last
    lengths = (moves != PAD).sum(axis=2).max(axis=1).tolist()
    begins = [range(board * agents * steps, (board + 1) * agents * steps, steps) for board in range(boards)]
    return [[letters[begin : begin + length] for begin in of] for of, length in zip(begins, lengths, strict=True)]


_LETTERS = np.frombuffer((LETTERS + MOVES[WAIT]).encode(), np.uint8)
_CODES = np.full(256, PAD - 1, np.int8)
_CODES[[ord(letter) for letter in f"{LETTERS} "]] = [*range(len(LETTERS)), PAD]


def labelled(rows: Sequence[Row], labels: Labels) -> list[Row]:
    """The rows with their labels; plans that reach the makespan where `labels` has them."""
    fields = (labels.status, labels.certificate, labels.makespan, labels.sum_of_costs, labels.wait_required)
    numbers = (np.asarray(field).tolist() for field in fields)
    plans = plans_of(np.asarray(labels.moves))
    shortest: Sequence[list[str] | None] = [None] * len(rows)
    if labels.makespan_moves is not None:
        shortest = plans_of(np.asarray(labels.makespan_moves))
    return [_labelled(*row) for row in zip(rows, *numbers, plans, shortest, strict=True)]


def _labelled(
    row: Row,
    status: int,
    certificate: int,
    makespan: int,
    cost: int,
    wait: bool,
    plan: list[str],
    makespan_plan: list[str] | None,
) -> Row:
    solvable = status == Status.SOLVABLE
    return msgspec.structs.replace(
        row,
        hole_ratio=row.hole_ratio if row.hole_ratio is not None else _hole_ratio(row),
        status=STATUS_NAMES[status],
        makespan=makespan if solvable else None,
        sum_of_costs=cost if solvable else None,
        wait_required=wait if solvable else None,
        plan=plan if solvable else None,
        makespan_plan=makespan_plan if solvable else None,
        certificate=CERTIFICATE_NAMES[certificate] if certificate != Certificate.NONE else None,
    )


def _hole_ratio(row: Row) -> float:
    holes = sum(line.count("H") for line in row.grid)
    return round(holes / max(row.size * row.size - 2 * row.agents, 1), 4)


def rows_of(batches: dict[int, Batch], config: EnvConfig) -> list[Row]:
    """The rows of a generated set, in its order."""
    return rows_in_turn([batches], [config])


def rows_in_turn(made: Sequence[dict[int, Batch]], configs: Sequence[EnvConfig]) -> list[Row]:
    """The rows of a set that configs have a board each of in turn, in its order."""
    rows = {place: row for part in zip(made, configs, strict=True) for place, row in _by_place(*part)}
    return [rows[place] for place in sorted(rows)]


def _by_place(batches: dict[int, Batch], config: EnvConfig) -> Iterator[tuple[int, Row]]:
    for size, batch in batches.items():
        cell = config.sizes[size]
        name = f"{config.agents}ag_{size}x{size}_hr{cell.hole_ratio:.2f}_wr{cell.wait_ratio:.2f}"
        places = batch.index.tolist()
        fields = (places, _grids(batch.boards.holes), _cells(batch.boards.starts), _cells(batch.boards.goals))
        bare = [
            Row(f"{name}_{place:06d}", size, config.agents, grid, starts, goals, cell.hole_ratio)
            for place, grid, starts, goals in zip(*fields, strict=True)
        ]
        yield from zip(places, labelled(bare, batch.labels), strict=True)


def _grids(holes: Any) -> list[list[str]]:
    boards, size, _ = holes.shape
    letters = np.where(np.asarray(holes), b"H", b".").tobytes().decode()
    lines = [letters[begin : begin + size] for begin in range(0, len(letters), size)]
    return [lines[begin : begin + size] for begin in range(0, boards * size, size)]


def _cells(cells: Any) -> list[list[tuple[int, int]]]:
    return [[(row, column) for row, column in board] for board in np.asarray(cells).tolist()]


def _jsonl_chunks(path: Path, skip: int) -> Iterator[Chunk]:
    try:
        with open(path, "rb") as lines:
            first = 1 + sum(1 for _ in itertools.islice(lines, skip))
            while raw := lines.readlines(CHUNK_BYTES):
                yield Chunk(path, first, raw)
                first += len(raw)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error


def _parquet_chunks(path: Path, skip: int) -> Iterator[Chunk]:
    with _parquet_errors(path), pq.ParquetFile(path) as parquet:
        begin = 0  # of a row group
        for group in range(parquet.num_row_groups):
            first, rows = begin, parquet.metadata.row_group(group).num_rows
            begin += rows
            if begin <= skip:
                continue
            for batch in parquet.iter_batches(CHUNK_ROWS, [group]):
                wanted = batch.slice(max(skip - first, 0))
                if len(wanted):
                    yield Chunk(path, first + len(batch) - len(wanted) + 1, wanted)
                first += len(batch)


@contextlib.contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]}); check it") from error
