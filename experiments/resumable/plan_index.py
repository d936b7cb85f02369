"""Plans by the id of their board, kept in a file, as they may exceed the memory."""

import errno
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa

from lakewright.core_jax.rows import PlanRow

FIND = "SELECT plans.id, plan FROM json_each(?) JOIN plans ON plans.id = value"


class PlanIndex:
    """Plans that are added once and then found by id."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._errors():
            self._file = sqlite3.connect(path, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = OFF")  # an incomplete index is built again
            self._file.execute("PRAGMA cache_size = -65536")  # KiB
            self._file.execute("CREATE TABLE IF NOT EXISTS plans (id TEXT PRIMARY KEY, plan BLOB) WITHOUT ROWID")

    def add(self, row: PlanRow) -> None:
        """Adds a plan. Raises ValueError where its board has one already."""
        with self._errors():
            try:
                self._file.execute("INSERT INTO plans VALUES (?, ?)", (_key(row.id), msgspec.json.encode(row.plan)))
            except sqlite3.IntegrityError as error:
                raise ValueError(
                    f"id is {row.id!r:.60}, which has a plan in an earlier line; remove one of them"
                ) from error

    def commit(self) -> None:
        """Completes the index."""
        with self._errors():
            self._file.commit()

    def find(self, names: pa.StringArray) -> pa.ListArray:
        """The plan for each board of `names`, null where there is none."""
        keys = [name and _key(name) for name in names.to_pylist()]
        wanted = msgspec.json.encode(keys).decode()
        with self._errors(), self._lock:
            found = dict(self._file.execute(FIND, (wanted,)).fetchall())
        plans = [found.get(key) for key in keys]
        return pa.array([plan and msgspec.json.decode(plan) for plan in plans], pa.list_(pa.string()))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error), str(self._path)) from error


def _key(name: str) -> str:
    """The id without NUL, at which SQLite's texts end; different ids have different keys."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")
