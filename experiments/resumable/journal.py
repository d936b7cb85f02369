"""A journal: a file of lines of JSON that only grows, so that a kill loses at most the line being written."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from lakewright.core_jax.errors import InputError

T = TypeVar("T", bound=msgspec.Struct)


class Journal(Generic[T]):
    """The lines of `path`, each of type `kind`. Opening it removes a line that a kill left unfinished.

    Raises InputError if the file is not such a journal, and leaves it unchanged. Iteration raises InputError at any
    other line that is not a `kind`.
    """

    def __init__(self, path: Path, kind: type[T]) -> None:
        self._path, self._kind = path, kind
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a+b")  # noqa: SIM115
        self._file.seek(0)
        text = self._file.read()
        whole = text.rfind(b"\n") + 1
        if not self._is_ours(text[:whole], text[whole:]):
            self._file.close()
            raise InputError(f"{path}:1: is not a line of a {kind.__name__} journal; remove it or choose another path")
        self._file.truncate(whole)

    def _is_ours(self, lines: bytes, rest: bytes) -> bool:
        """Whether the first line is a `kind`, or without any the rest is how one begins."""
        if lines or _is_json(rest):  # whole JSON is nothing that a kill left unfinished
            return _is_json((lines or rest).partition(b"\n")[0], self._kind)
        begins = b'{"%s":' % self._kind.__struct_encode_fields__[0].encode()
        return rest[: len(begins)] == begins[: len(rest)]

    def __enter__(self) -> "Journal[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[T]:
        decoder = msgspec.json.Decoder(self._kind)
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            try:
                yield decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise InputError(f"{self._path}:{number}: {error}; remove the line; it is then made again") from error

    def add(self, *rows: T) -> None:
        """Writes rows; once this returns they survive a kill of the process and a power cut."""
        self._file.write(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        self._file.flush()
        os.fsync(self._file.fileno())


def _is_json(text: bytes, kind: Any = Any) -> bool:
    try:
        msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
