"""Plans by the id of their board, in a file because they may exceed the memory."""

import errno
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa

from lakewright.core_jax.rows import PlanRow

CREATE = "CREATE TABLE IF NOT EXISTS plans (id TEXT PRIMARY KEY, plan BLOB, number INTEGER) WITHOUT ROWID"
FIND = "SELECT plans.id, plan FROM json_each(?) JOIN plans ON plans.id = value"


class PlanIndex:
    """Plans that are added once and then found by id."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._name_errors():
            self._file = sqlite3.connect(path, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = OFF")  # an incomplete index is built again
            self._file.execute("PRAGMA cache_size = -65536")  # KiB
            self._file.execute(CREATE)

    def add(self, row: PlanRow, number: int = 0) -> None:
        """Adds a plan, with the number of its row. Raises ValueError if its board has one already."""
        values = _escape_id(row.id), msgspec.json.encode(row.plan), number
        with self._name_errors():
            try:
                self._file.execute("INSERT INTO plans VALUES (?, ?, ?)", values)
            except sqlite3.IntegrityError as error:
                raise ValueError(
                    f"id is {row.id!r:.60}, which has a plan in an earlier line; remove one of them"
                ) from error

    def commit(self) -> None:
        """Completes the index."""
        with self._name_errors():
            self._file.commit()

    def find_plans(self, names: pa.StringArray) -> pa.ListArray:
        """The plan for each board of `names`, null if there isn't any."""
        keys = [name and _escape_id(name) for name in names.to_pylist()]
        wanted = msgspec.json.encode(keys).decode()
        with self._name_errors(), self._lock:
            found = dict(self._file.execute(FIND, (wanted,)).fetchall())
        plans = [found.get(key) for key in keys]
        return pa.array([plan and msgspec.json.decode(plan) for plan in plans], pa.list_(pa.string()))

    def number_of(self, name: str) -> int:
        """The number of the row that the plan for a board came with."""
        with self._name_errors(), self._lock:
            return self._file.execute("SELECT number FROM plans WHERE id = ?", (_escape_id(name),)).fetchone()[0]

    def without_board(self, names: Iterable[str]) -> Iterator[tuple[int, str]]:
        """The plans that are for no board of `names`, in order: the number of the row, and the id."""
        with self._name_errors():
            self._file.execute("CREATE TEMP TABLE boards (id TEXT PRIMARY KEY) WITHOUT ROWID")
            self._file.executemany("INSERT OR IGNORE INTO boards VALUES (?)", ((_escape_id(name),) for name in names))
            wanted = "SELECT number, id FROM plans WHERE id NOT IN (SELECT id FROM boards) ORDER BY number"
            for number, key in self._file.execute(wanted):
                yield number, _unescape_id(key)
            self._file.execute("DROP TABLE boards")

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error), str(self._path)) from error


def _escape_id(name: str) -> str:
    """The id without NUL, at which SQLite's texts end; different ids have different keys."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def _unescape_id(key: str) -> str:
    """The id that a key was made from."""
    return re.sub(r"\\([\\0])", lambda found: "\0" if found[1] == "0" else "\\", key)
