"""A journal: a file of lines of JSON that only grows, so that a kill loses at most the line being written.

Each line ends with a digest of itself and of all before it, so that a changed line is noticed. Lines of earlier
versions have no digest. A log of lines takes its place once it is complete, so that repeated work leaves one log.
"""

import errno
import filecmp
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import listed, name_errors, replace_file, update_listing

T = TypeVar("T", bound=msgspec.Struct)
SEALED = re.compile(rb'(\{.*),"sha256":"([0-9a-f]{16})"\}\n?')
REMEDY = "remove this line and all after it; their results are then computed again"


class LineJournal(Generic[T]):
    """The lines of `path`, each of type `kind`. Opening it removes a line that a kill left unfinished.

    of: what the lines belong to, so that another journal's lines are noticed. empty: whether there was no line.

    Raises InputError if the file is not such a journal, and leaves it unchanged. Iteration raises InputError at any
    other line that is not a `kind`, or that was changed.
    """

    def __init__(self, path: Path, kind: type[T], of: str = "") -> None:
        self._path, self._kind, self._of = path, kind, of
        path.parent.mkdir(parents=True, exist_ok=True)
        # Appending, so a write goes to the end wherever the file was read, and no finished line can change.
        self._file = open(path, "a+b", buffering=0)  # noqa: SIM115
        self._file.seek(0)
        text = self._file.read()
        whole = text.rfind(b"\n") + 1
        if not self._is_ours(text[:whole], text[whole:]):
            self._file.close()
            raise InputError(f"{path}:1: is not a line of a {kind.__name__} journal; remove it or choose another path")
        # After the check, because a file that is not a journal must not be changed.
        self._file.truncate(whole)
        # The hash of all lines: the next digest continues from it, so adding a line reads none of those before.
        self._written = hashlib.sha256(of.encode() + text[:whole])
        self.empty = not whole

    def _is_ours(self, lines: bytes, rest: bytes) -> bool:
        """Whether the first line is a `kind`, or without any the rest is how one begins."""
        if lines or _is_json(rest):  # whole JSON is nothing that a kill left unfinished
            return _is_json(_split((lines or rest).partition(b"\n")[0])[0], self._kind)
        begins = b'{"%s":' % self._kind.__struct_encode_fields__[0].encode()
        return rest[: len(begins)] == begins[: len(rest)]

    def __enter__(self) -> "LineJournal[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[T]:
        decoder = msgspec.json.Decoder(self._kind)
        with open(self._path, "rb") as lines:
            for number, text in enumerate(_unseal(self._path, lines, self._of), 1):
                try:
                    yield decoder.decode(text)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    raise InputError(f"{self._path}:{number}: {error}; {REMEDY}") from error

    def add(self, *rows: T) -> None:
        """Writes all rows or nothing; once this returns they survive a kill of the process and a power cut."""
        lines, written = [], self._written.copy()
        for row in rows:
            text = msgspec.json.encode(row)
            lines.append(b'%s,"sha256":"%s"}\n' % (text[:-1], _seal(written, text)))
            written.update(lines[-1])
        self._append(b"".join(lines))
        self._written = written  # only after the write: lines that failed must not count in later digests

    def _append(self, lines: bytes) -> None:
        end = self._file.seek(0, os.SEEK_END)
        try:
            if self._file.write(lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(end)  # what a full disk took of the lines, or the next line would continue it
            raise


def check_journal(path: Path, of: str) -> None:
    """Raises InputError if a line of the journal of `of` was changed; nothing else is checked."""
    with open(path, "rb") as file:
        for _ in _unseal(path, file, of):
            pass


def _unseal(path: Path, lines: Iterable[bytes], of: str) -> Iterator[bytes]:
    """The lines without their digests. Raises InputError at one that was changed."""
    before, sealed = hashlib.sha256(of.encode()), False
    for number, line in enumerate(lines, 1):
        text, seal = _split(line)
        # Earlier versions wrote no digests. After the first digest every line must have one, or a line could be added.
        sealed = sealed or bool(seal)
        if sealed and seal != _seal(before, text):
            raise InputError(
                f"{path}:{number}: this line, or one before it, was changed or belongs to another folder; {REMEDY}"
            )
        before.update(line)
        yield text


def _split(line: bytes) -> tuple[bytes, bytes]:
    """A line without its digest, and the digest; empty if the line has no digest."""
    found = SEALED.fullmatch(line)
    return (found[1] + b"}", found[2]) if found else (line.removesuffix(b"\n"), b"")


def _seal(before: Any, text: bytes) -> bytes:
    """The digest of a line and of all before it. before: their hash so far."""
    digest = before.copy()
    digest.update(text)
    return digest.hexdigest()[:16].encode()


def _is_json(text: bytes, kind: Any = Any) -> bool:
    try:
        msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


@contextmanager
def line_log(path: Path, shown: bool = False) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields a function that adds a line; the log is at `path` once the block ends without an error.

    With `shown`, a link at `path` shows the lines so far, unless a whole log is there.

    One that a killed process left is removed first, so that the time of the folder is when this one was begun. A log
    that is the same as the one at `path` does not replace it: a training that is killed again and again while its logs
    end has one log fewer to end each time.
    """
    beside = _part_file(path)
    beside.unlink(missing_ok=True)
    beside.parent.mkdir(parents=True, exist_ok=True)
    try:
        with name_errors(path), open(beside, "wb", buffering=0) as lines:
            if shown and (path.is_symlink() or not path.exists()):
                path.unlink(missing_ok=True)
                path.symlink_to(beside.name)

            def add(figures: dict[str, Any]) -> None:
                lines.write(msgspec.json.encode(figures) + b"\n")

            yield add
        _remove_link(path)
        if path.exists() and filecmp.cmp(beside, path, shallow=False):
            update_listing(path)
        else:
            with listed(path), name_errors(path):
                replace_file(beside, path)
    finally:
        _remove_link(path)
        beside.unlink(missing_ok=True)


def _remove_link(path: Path) -> None:
    if path.is_symlink():
        path.unlink()


def lines_so_far(path: Path) -> list[dict[str, Any]]:
    """The lines of the log for which a block is open, in this process or another."""
    beside = _part_file(path)
    return [msgspec.json.decode(line) for line in beside.read_bytes().split(b"\n")[:-1]] if beside.exists() else []


def _part_file(path: Path) -> Path:
    """The path at which the log is written while it grows."""
    return path.with_name(f".{path.name}.part")
