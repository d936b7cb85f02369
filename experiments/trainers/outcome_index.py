"""The index of a folder's outcomes: the totals of the lines read so far, so that only new lines are read.

    outcomes.index    a SHA-256 of the rest, then an `Index` as MessagePack
    traces.index      likewise, for traces

It is made from the outcomes alone. If it is missing, damaged, or of other outcomes, all lines are read, and it is
made again.
"""

import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from lakewright.core_jax.support import refuse_pipe, write_atomically
from lakewright.engineer.signal import OpenGroup, StratumCount

NAME = 16  # bytes of the digest that an answer is known by: among 10 billion, two alike have a chance of 1 in 10^18
CHUNK = 1 << 20  # bytes that are read at a time
MOST_NEW = 1 << 16  # names that are not sorted yet
NOTHING = hashlib.sha256().hexdigest()


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A summary of the first lines of the outcomes.

    format: changes with the meaning of a field, and with which lines count. offset, lines: how many bytes and how many
    lines there were. digest: the SHA-256 of these bytes. counts, open_groups: by version and stratum, and the groups
    that may get more answers, by name. held_out: answers to held-out problems. faults: as in `OutcomeTotals`. group,
    together: the group of the last line, and how often each line without a number stood in it. names: the sorted
    digests of all answers that count.
    """

    format: int = 4
    offset: int = 0
    lines: int = 0
    digest: str = NOTHING
    counts: dict[int, dict[str, StratumCount]] = {}
    open_groups: dict[bytes, OpenGroup] = {}
    held_out: int = 0
    faults: dict[str, dict[str, int]] = {}
    group: str = ""
    together: dict[bytes, int] = {}
    names: bytes = b""


class TraceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The counts of the first lines of a file of traces.

    offset, digest: how many bytes there were, and their SHA-256. recorded: how many are outcomes. left_out: the others.
    """

    offset: int = 0
    digest: str = NOTHING
    recorded: int = 0
    left_out: dict[str, int] = {}


class TraceIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of reading traces, and of reading the outcomes before.

    format: as in `Index`. offset, digest: for the outcomes. names: the sorted digests of their answers. files: by path.
    """

    format: int = 2
    offset: int = 0
    digest: str = NOTHING
    names: bytes = b""
    files: dict[str, TraceFile] = {}


EMPTY, NO_TRACES = Index(), TraceIndex()
T = TypeVar("T", Index, TraceIndex)


def write_index(path: Path, index: Index | TraceIndex) -> None:
    """Writes an index."""
    data = msgspec.msgpack.encode(index)
    write_atomically(path, hashlib.sha256(data).digest() + data)


def read_index(path: Path, empty: T) -> T:
    """The index of a file; `empty` if it is missing, damaged, or of another format."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return empty
    digest, data = data[:32], data[32:]
    if hashlib.sha256(data).digest() != digest:
        return empty
    try:
        index = msgspec.msgpack.decode(data, type=type(empty))
    except msgspec.MsgspecError:  # of another version of this package
        return empty
    return index if index.format == empty.format else empty


def digest_name(text: bytes) -> bytes:
    """The name of an answer, from a text that no other answer has."""
    return hashlib.blake2b(text, digest_size=NAME).digest()


class Names:
    """The names of answers that count: an index's, and the ones added since."""

    def __init__(self, names: bytes = b"") -> None:
        self._old = np.frombuffer(names, f"S{NAME}")
        self._new: set[bytes] = set()

    def add(self, name: bytes) -> bool:
        """Adds a name; whether it wasn't there before."""
        place = int(self._old.searchsorted(name))
        if name in self._new or self._old[place : place + 1].tobytes() == name:
            return False
        self._new.add(name)
        if len(self._new) >= max(MOST_NEW, len(self._old) // 16):  # a set takes ten times the memory
            self._merge()
        return True

    def _merge(self) -> None:
        new = np.sort(np.array(list(self._new), self._old.dtype))
        self._old = np.insert(self._old, self._old.searchsorted(new), new)
        self._new.clear()

    def encode(self) -> bytes:
        """All names, sorted, one after the other."""
        self._merge()
        return self._old.tobytes()


class Prefix:
    """The first bytes of a file, more and more of them: their SHA-256 is made in one pass."""

    def __init__(self, path: Path) -> None:
        self._path, self._size, self._hash = path, 0, hashlib.sha256()

    def digest(self, size: int) -> str:
        """The SHA-256 of the first `size` bytes, at least as many as the last time, or of all if there are fewer."""
        left = size - self._size
        if left > 0 and self._path.exists():
            refuse_pipe(self._path)
            with open(self._path, "rb") as file:
                file.seek(self._size)
                while left > 0 and (data := file.read(min(left, CHUNK))):
                    self._hash.update(data)
                    left -= len(data)
            self._size = size
        return self._hash.hexdigest()
