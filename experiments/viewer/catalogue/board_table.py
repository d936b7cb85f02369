"""Boards in files of any length, filtered and page by page: DuckDB reads them, never whole."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import check_digest
from lakewright.core_jax.types import FAILURE_NAMES, STATUS_NAMES
from lakewright.experiments.jobs.runtime.library_setup import load_duckdb

PAGE = 24
MEMORY, THREADS = "1GiB", 2  # of DuckDB
COUNTED = 64 << 20  # bytes of JSONL up to which all rows are counted
COLUMNS = {
    "id": "VARCHAR",
    "size": "BIGINT",
    "agents": "BIGINT",
    "grid": "VARCHAR[]",
    "starts": "BIGINT[][]",
    "goals": "BIGINT[][]",
    "hole_ratio": "DOUBLE",
    "status": "VARCHAR",
    "makespan": "BIGINT",
    "sum_of_costs": "BIGINT",
    "wait_required": "BOOLEAN",
    "plan": "VARCHAR[]",
}
NEEDED = {"grid", "starts", "goals"}
# `lakewright.core_jax.rows.board_key` in SQL; null where a part is missing.
KEY = "sha256('[' || to_json(boards.grid) || ',' || to_json(boards.starts) || ',' || to_json(boards.goals) || ']')"
SORTS = {
    "": "place",
    "makespan": "makespan DESC NULLS LAST, place",
    "cost": "sum_of_costs DESC NULLS LAST, place",
    "learnability": "learnability DESC NULLS LAST, place",
}

# By the share of valid plans among those given for a board.
VERDICTS = {"valid": "success = 1", "failed": "success = 0", "mixed": "success > 0 AND success < 1"}
# What a table may know beyond the boards; null where it does not.
EXTRA = {
    "failure": "VARCHAR",
    "agent": "BIGINT",
    "step": "BIGINT",
    "answer": "VARCHAR[]",
    "success": "DOUBLE",
    "completions": "BIGINT",
    "learnability": "DOUBLE",
    "failures": "VARCHAR[]",
    "kept": "BOOLEAN",
}
NOTHING: dict[str, str] = {}
_LOCK = threading.Lock()
_SHARED: list[Any] = []  # the connection


class Filters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter of boards and their order; a field that is None or empty doesn't filter.

    plans: whether plans for the board were saved. policy: its plans count on held-out boards; by default the last.
    """

    size: int | None = None
    agents: int | None = None
    least_holes: float | None = None
    most_holes: float | None = None
    wait: bool | None = None
    status: str = ""
    verdict: str = ""
    failure: str = ""
    learnable: float | None = None
    plans: bool | None = None
    policy: str = ""
    sort: str = ""
    page: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("status", STATUS_NAMES), ("failure", FAILURE_NAMES), ("verdict", tuple(VERDICTS))):
            if getattr(self, name) not in ("", *choices):
                raise ValueError(f"{name} is {getattr(self, name)!r:.40}; choose from {', '.join(choices)}")
        if self.sort not in SORTS:
            raise ValueError(f"sort is {self.sort!r:.40}; choose from {', '.join(filter(None, SORTS))}")
        if not 0 <= self.page < 1 << 40:
            raise ValueError(f"page is {self.page}; pages count from 0")

    def conditions(self) -> tuple[list[str], list[Any]]:
        """The conditions of the database query, with `?` for each value."""
        asked: list[tuple[str, Any]] = [
            ("size = ?", self.size),
            ("agents = ?", self.agents),
            ("hole_ratio >= ?", self.least_holes),
            ("hole_ratio <= ?", self.most_holes),
            ("wait_required = ?", self.wait),
            ("status = ?", self.status or None),
            ("list_contains(failures, ?)", self.failure or None),
            ("learnability >= ?", self.learnable),
            ("kept = ?", self.plans),
        ]
        wanted = [(condition, value) for condition, value in asked if value is not None]
        verdict = [VERDICTS[self.verdict]] if self.verdict else []
        return [*verdict, *(condition for condition, _ in wanted)], [value for _, value in wanted]


class Tile(msgspec.Struct, frozen=True):
    """A board of a table. row: None if it isn't a board, and `problem` says why.

    failure, agent, step, answer: the first plan's, if any was given. success: the share of valid plans among the
    `completions` that were given. failures: the ways in which they fail. kept: True if they can be shown.
    """

    place: int
    row: Row | None
    problem: str = ""
    failure: str | None = None
    agent: int | None = None
    step: int | None = None
    answer: list[str] | None = None
    success: float | None = None
    completions: int | None = None
    learnability: float | None = None
    failures: list[str] | None = None
    kept: bool | None = None

    @property
    def valid(self) -> bool | None:
        """True if all plans are valid, False if all are invalid; None if only some are, or if it is unknown."""
        return None if self.success is None or 0 < self.success < 1 else self.success == 1


class BoardTable(msgspec.Struct, frozen=True):
    """Boards with everything known of them. relation: SQL with the columns COLUMNS, `place` and EXTRA's.

    judged: whether plans were given for them; several: more than one for a board.
    """

    title: str
    relation: str
    values: list[Any]
    judged: bool = False
    several: bool = False
    countable: bool = True

    def page(self, filters: Filters) -> tuple[list[Tile], bool]:
        """The boards of a page, and whether there are more. Raises InputError if the file cannot be read."""
        where, values = _write_where(filters)
        query = f"SELECT * FROM ({self.relation}) {where} ORDER BY {SORTS[filters.sort]} LIMIT ? OFFSET ?"
        if not filters.sort:
            query = f"SELECT * FROM ({self.relation}) {where} LIMIT ? OFFSET ?"
        found = ask_database(query, [*self.values, *values, PAGE + 1, filters.page * PAGE])
        return [_read_tile(raw) for raw in found[:PAGE]], len(found) > PAGE

    def count(self, filters: Filters) -> int | None:
        """The number of boards; None if counting would take long."""
        if not self.countable:
            return None
        where, values = _write_where(filters)
        [found] = ask_database(f"SELECT count(*) AS boards FROM ({self.relation}) {where}", [*self.values, *values])
        return found["boards"]

    def at(self, place: int) -> tuple[Tile, bool]:
        """The board at a place of the file, from 0, and whether another follows. Raises InputError without a board."""
        query = f"SELECT * FROM ({self.relation}) WHERE place BETWEEN ? AND ? ORDER BY place LIMIT 2"
        found = ask_database(query, [*self.values, place, place + 1])
        if not found or found[0]["place"] != place:
            raise InputError(f"{self.title}: has no board {place}; choose a smaller number")
        return _read_tile(found[0]), len(found) > 1


def boards_of_file(path: Path, known: Mapping[str, str] = NOTHING, source: str = "") -> tuple[str, list[Any]]:
    """SQL that reads the boards of a file, and its values. known: columns of EXTRA, as SQL over what `source` joins.

    Raises InputError if the file holds no boards.
    """
    values: list[Any] = [escape_glob(path)]
    if path.suffix == ".parquet":
        there = _columns_of(path)
        if missing := NEEDED - set(there):
            raise InputError(f"{path.name}: has no column {min(missing)!r}, so it holds no boards; choose another file")
        reader = "read_parquet(?, file_row_number = true)"
        names = [f"TRY_CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items() if name in there]
        names += [f"CAST(NULL AS {kind}) AS {name}" for name, kind in COLUMNS.items() if name not in there]
        place = "file_row_number AS place"
    else:
        kinds = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
        reader = f"read_json(?, format = 'newline_delimited', columns = {{{kinds}}}, ignore_errors = true)"
        # Of a missing status pandas makes NaN, which is read as a text here; of missing numbers null.
        names = [f"NULLIF({name}, 'NaN') AS {name}" if name == "status" else name for name in COLUMNS]
        place = "row_number() OVER () - 1 AS place"
    boards = f"SELECT {', '.join(names)}, {place} FROM {reader}"
    given = ", ".join(f"CAST({known.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind in EXTRA.items())
    return f"SELECT boards.*, {given} FROM ({boards}) AS boards {source}", values


def ask_database(query: str, values: list[Any]) -> list[dict[str, Any]]:
    """The rows that DuckDB answers with. Raises InputError, in one line, if a file cannot be read."""
    duckdb = load_duckdb()
    try:
        with _open_database().cursor() as cursor:
            found = cursor.execute(query, values)
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    except duckdb.Error as error:
        raise InputError(
            f"the boards cannot be read ({str(error).splitlines()[0][:200]}); is the file whole?"
        ) from error


def escape_glob(path: Path) -> str:
    """A path as DuckDB takes it, to whom `*` would mean many files. Raises InputError if the file was changed."""
    check_digest(path)
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def _open_database() -> Any:
    """One database of this process, in memory; it fetches nothing from anywhere."""
    with _LOCK:
        if not _SHARED:
            settings = {"memory_limit": MEMORY, "threads": THREADS, "autoinstall_known_extensions": False}
            _SHARED.append(load_duckdb().connect(":memory:", config=settings))
        return _SHARED[0]


def _columns_of(path: Path) -> list[str]:
    try:
        return pq.read_schema(path).names
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path.name}: not a readable Parquet file ({str(error).splitlines()[0]:.120})") from error


def _write_where(filters: Filters) -> tuple[str, list[Any]]:
    conditions, values = filters.conditions()
    return (f"WHERE {' AND '.join(conditions)}" if conditions else ""), values


def _read_tile(raw: dict[str, Any]) -> Tile:
    known = {name: raw.get(name) for name in EXTRA}
    try:
        row, problem = _read_row(raw), ""
    except (ValueError, TypeError, msgspec.ValidationError) as error:
        row, problem = None, str(error)[:300]
    return Tile(raw["place"], row, problem, **known)


def _read_row(raw: dict[str, Any]) -> Row:
    plain = {name: raw[name] for name in COLUMNS}
    if plain["id"] is None:
        plain["id"] = f"row {raw['place']}"
    for name, count in (("size", plain["grid"]), ("agents", plain["starts"])):
        if plain[name] is None and count is not None:
            plain[name] = len(count)
    return msgspec.convert(plain, Row)
