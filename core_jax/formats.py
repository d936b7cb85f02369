"""The row: one board with its labels, as a line of JSONL or a row of Parquet."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import jax
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core_jax.config import EnvConfig
from core_jax.decoding import convert
from core_jax.errors import InputError
from core_jax.files import replacing
from core_jax.generator import Batch
from core_jax.types import LETTERS, MOVES, PAD, STATUS_NAMES, WAIT, Board, Labels

MAX_BOARD_SIZE = 16
CHUNK_ROWS = 8192
R = TypeVar("R", bound=msgspec.Struct)


class Row(msgspec.Struct, frozen=True):
    """A board, its labels, and a plan that reaches `sum_of_costs`. Labels are null until solved, or where unsolvable.

    grid: `.` frozen, `H` hole. status: solvable, unsolvable or undecided. plan: a string of U D L R W for each agent.
    Raises ValueError where a field contradicts another.
    """

    id: str
    size: int
    agents: int
    grid: list[str]
    starts: list[tuple[int, int]]
    goals: list[tuple[int, int]]
    hole_ratio: float | None = None
    status: str | None = None
    makespan: int | None = None
    sum_of_costs: int | None = None
    wait_required: bool | None = None
    plan: list[str] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MAX_BOARD_SIZE:
            raise ValueError(f"size is {self.size}; choose 1 to {MAX_BOARD_SIZE}")
        if self.agents < 1:
            raise ValueError(f"agents is {self.agents}; there must be at least 1")
        _check_grid(self.grid, self.size)
        _check_cells("starts", self.starts, self)
        _check_cells("goals", self.goals, self)
        if self.plan is not None:
            check_plan(self.plan, self.agents)


class PlanRow(msgspec.Struct, frozen=True):
    """A plan for the board of the same id."""

    id: str
    plan: list[str]


SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("size", pa.int32()),
        ("agents", pa.int32()),
        ("grid", pa.list_(pa.string())),
        ("starts", pa.list_(pa.list_(pa.int32()))),
        ("goals", pa.list_(pa.list_(pa.int32()))),
        ("hole_ratio", pa.float64()),
        ("status", pa.string()),
        ("makespan", pa.int32()),
        ("sum_of_costs", pa.int32()),
        ("wait_required", pa.bool_()),
        ("plan", pa.list_(pa.string())),
    ]
)


def check_plan(plan: list[str], agents: int) -> None:
    """Raises ValueError unless `plan` is a string of known moves for each agent."""
    if len(plan) != agents:
        raise ValueError(f"plan has {len(plan)} strings for {agents} agents; give one string an agent")
    for agent, moves in enumerate(plan):
        if unknown := [letter for letter in moves if letter not in MOVES]:
            raise ValueError(f"plan[{agent}] has the move {unknown[0]!r}; use {' '.join(MOVES)} only")


def read_rows(
    path: str | Path,
    kind: type[R],
    on_error: Callable[[InputError], None],
    check: Callable[[R], object] = lambda row: None,
) -> Iterator[list[R]]:
    """Yields the rows of a `.jsonl` or `.parquet` file in chunks of at most CHUNK_ROWS.

    A bad row, or one on which `check` raises ValueError, is left out and told to `on_error` with its line (from 1).
    Raises InputError where the file itself cannot be read.
    """
    raw = _raw_parquet(Path(path)) if ending(path) == ".parquet" else _raw_jsonl(Path(path), on_error)
    while chunk := list(itertools.islice(raw, CHUNK_ROWS)):
        rows = []
        for place, fields in chunk:
            try:
                row = convert(fields, kind, place)
                check(row)
                rows.append(row)
            except InputError as error:
                on_error(error)
            except ValueError as error:
                on_error(InputError(f"{place}: {error}"))
        yield rows


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
                yield lambda rows: parquet.write_table(
                    pa.Table.from_pylist([msgspec.to_builtins(row) for row in rows], schema)
                )
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


def ending(path: str | Path) -> str:
    """`.jsonl` or `.parquet`; raises InputError on any other ending."""
    form = Path(path).suffix
    if form not in (".jsonl", ".parquet"):
        raise InputError(f"{path}: the ending {form or '(none)'} is no known format; use .jsonl or .parquet")
    return form


def boards_of(rows: list[Row]) -> Board:
    """The boards of rows of one size and number of agents: a `Board` of numpy arrays with leading axis B."""
    size = rows[0].size
    letters = np.array(["".join(row.grid) for row in rows])
    holes = letters.view("U1").reshape(len(rows), size, size) == "H"
    starts = np.array([row.starts for row in rows], np.int32)
    goals = np.array([row.goals for row in rows], np.int32)
    return Board(holes, starts, goals)  # type: ignore[arg-type]


def moves_of(plans: list[list[str]], horizon: int) -> np.ndarray:
    """Move strings to int8 [B, K, horizon], padded with PAD."""
    moves = np.full((len(plans), len(plans[0]), horizon), PAD, np.int8)
    for row, plan in enumerate(plans):
        for agent, letters in enumerate(plan):
            moves[row, agent, : len(letters)] = [MOVES.index(letter) for letter in letters]
    return moves


def plan_of(moves: np.ndarray) -> list[str]:
    """Moves int8 [K, T] to one string an agent, all as long as the longest: who is done waits."""
    length = int((moves != PAD).sum(axis=1).max())
    letters = np.array(list(LETTERS))[np.where(moves == PAD, WAIT, moves)[:, :length]]
    return ["".join(row) for row in letters]


def labelled(row: Row, labels: Labels, i: int) -> Row:
    """`row` with the labels at place `i`."""
    solvable = bool(labels.solvable[i])
    free_cells = row.size * row.size - 2 * row.agents
    holes = sum(line.count("H") for line in row.grid)
    return msgspec.structs.replace(
        row,
        hole_ratio=row.hole_ratio if row.hole_ratio is not None else round(holes / max(free_cells, 1), 4),
        status=STATUS_NAMES[int(labels.status[i])],
        makespan=int(labels.makespan[i]) if solvable else None,
        sum_of_costs=int(labels.sum_of_costs[i]) if solvable else None,
        wait_required=bool(labels.wait_required[i]) if solvable else None,
        plan=plan_of(np.asarray(labels.moves[i])) if solvable else None,
    )


def rows_of(batches: dict[int, Batch], config: EnvConfig) -> list[Row]:
    """The rows of a generated set, in its order."""
    rows: dict[int, Row] = {}
    for size, batch in batches.items():
        cell = config.sizes[size]
        letters = np.where(np.asarray(batch.boards.holes), "H", ".")
        name = f"{config.agents}ag_{size}x{size}_hr{cell.hole_ratio:.2f}_wr{cell.wait_ratio:.2f}"
        starts, goals = _cells(batch.boards.starts), _cells(batch.boards.goals)
        for i, place in enumerate(batch.index.tolist()):
            grid = ["".join(line) for line in letters[i]]
            row = Row(f"{name}_{place:06d}", size, config.agents, grid, starts[i], goals[i], cell.hole_ratio)
            rows[place] = labelled(row, batch.labels, i)
    return [rows[place] for place in sorted(rows)]


def _cells(cells: jax.Array) -> list[list[tuple[int, int]]]:
    return [[(row, column) for row, column in board] for board in np.asarray(cells).tolist()]


def _raw_jsonl(path: Path, on_error: Callable[[InputError], None]) -> Iterator[tuple[str, Any]]:
    try:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        yield f"{path}:{number}", msgspec.json.decode(line)
                    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                        on_error(InputError(f"{path}:{number}: not JSON ({error}); one object a line"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error


def _raw_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with pq.ParquetFile(path) as parquet:
            number = itertools.count(1)
            for batch in parquet.iter_batches(CHUNK_ROWS):
                yield from ((f"{path}: row {next(number)}", fields) for fields in batch.to_pylist())
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]}); check it") from error


def _check_grid(grid: list[str], size: int) -> None:
    if len(grid) != size:
        raise ValueError(f"grid has {len(grid)} lines for size {size}; give one line a row of the board")
    for number, line in enumerate(grid):
        if len(line) != size:
            raise ValueError(f"grid[{number}] is {line!r:.40}, not {size} cells long")
        if unknown := [letter for letter in line if letter not in ".H"]:
            raise ValueError(f"grid[{number}] holds {unknown[0]!r}; use '.' for frozen and 'H' for a hole")


def _check_cells(name: str, cells: list[tuple[int, int]], row: Row) -> None:
    if len(cells) != row.agents:
        raise ValueError(f"{name} has {len(cells)} cells for {row.agents} agents; give one an agent")
    for agent, (line, column) in enumerate(cells):
        if not (0 <= line < row.size and 0 <= column < row.size):
            board = f"{row.size}x{row.size} board"
            raise ValueError(f"{name}[{agent}] is [{line}, {column}], off the {board}; use 0-based cells")
        if row.grid[line][column] == "H":
            raise ValueError(f"{name}[{agent}] is [{line}, {column}], a hole; choose a frozen cell")
    if len(set(cells)) != len(cells):
        raise ValueError(f"{name} are {[list(cell) for cell in cells]}: two agents share a cell; make them distinct")
