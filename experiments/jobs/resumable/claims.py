"""Claims: a folder belongs to one piece of work, and a file in it says which.

A command that works in a folder claims it first. The same work continues there; other work is refused in one line that
names the first difference, and a second process is refused while the first one works.
"""

import contextlib
import dataclasses
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import LISTING, convert, listed, locked, read_raw, update_listing, write_json

W = TypeVar("W", bound=msgspec.Struct)
FIRST_FORMAT = 1  # of files that were written before they had a `format`
REMEDY = "give the same input and options to continue, or choose another folder"


@dataclasses.dataclass(frozen=True)
class Claim(Generic[W]):
    """The rules by which one kind of work claims its folders.

    kind: what such a folder holds, for messages. file: the name of its record. work: the type of the record, a Struct
    with a field `format`: all that identifies the work. format: the one that this version reads and writes. command:
    what makes such folders. exclusive: whether a folder that holds other files is refused. complete: adds the fields
    that records of earlier versions leave out.
    """

    kind: str
    file: str
    work: type[W]
    format: int
    command: str
    exclusive: bool = True
    complete: Callable[[Any], Any] = lambda raw: raw

    def take_folder(self, folder: Path, work: W, *, replace: bool = False, writer: str = "") -> None:
        """Gives `folder` the claim of `work`, or confirms that it is.

        Args:
            replace: the folder may change hands, because nothing in it depends on the earlier work.
            writer: see `lakewright.core_jax.support.replacing`.

        Raises InputError if the folder holds other work.
        """
        self._check_alone(folder)
        if self.is_in(folder) and not replace:
            self.refuse_other(folder / self.file, self.read_work(folder), work)
            if not writer:
                update_listing(folder / self.file)
        else:
            with listed(folder / self.file, writer=writer):
                write_json(folder / self.file, work, writer)

    @contextlib.contextmanager
    def hold_folder(self, folder: Path, work: W, *, shared: bool = False) -> Iterator[None]:
        """Takes `folder` and keeps other processes out; if `shared`, only those that do not share the work.

        Raises InputError if another process works there, or the folder holds other work.
        """
        self._check_alone(folder)  # before the lock, which makes the folder
        busy = f"{folder}: another process works on this {self.kind}; wait for it, or choose another folder"
        with locked(folder, busy, shared):
            self.take_folder(folder, work, writer=writer_name() if shared else "")
            yield

    def is_in(self, folder: Path) -> bool:
        """Return True if `folder` holds a record of this kind."""
        return (folder / self.file).exists()

    def read_work(self, folder: Path) -> W:
        """The work that `folder` holds. Raises InputError if it holds no work, or work of another format."""
        if not self.is_in(folder):
            raise InputError(f"{folder}: holds no {self.kind} (no {self.file}); give a folder made by `{self.command}`")
        path = folder / self.file
        raw = read_raw(path)
        found = raw.get("format", FIRST_FORMAT) if isinstance(raw, dict) else None
        if found != self.format:
            raise InputError(
                f"{path}: format is {found!r:.60}, this version reads {self.format}; "
                "use the version that wrote it, or another folder"
            )
        return convert(self.complete(raw), self.work, str(path))

    def refuse_other(self, path: Path, there: W, here: W) -> None:
        """Raises InputError if the work recorded in the file `path` is not the work `here`."""
        if found := describe_difference(there, here):
            raise InputError(f"{path}: holds another {self.kind}: {found}; {REMEDY}")

    def _check_alone(self, folder: Path) -> None:
        files = [file.name for file in folder.iterdir()] if self.exclusive and folder.is_dir() else []
        if any(not name.startswith(".") and name != LISTING for name in files) and not self.is_in(folder):
            raise InputError(f"{folder}: is not empty and holds no {self.kind}; choose another folder")


def describe_difference(there: msgspec.Struct, here: msgspec.Struct) -> str:
    """The first field in which two structs differ, with both values, for a message; empty if they are equal."""
    return next(iter(list_differences(there, here)), "")


def list_differences(there: msgspec.Struct, here: msgspec.Struct) -> list[str]:
    """The fields in which two structs differ, each with both values, for a message."""
    old, new = (_map_leaves(msgspec.json.decode(msgspec.json.encode(struct)), "") for struct in (there, here))
    return [
        f"{name[1:]} is {old.get(name)!r:.60} there and {new.get(name)!r:.60} now"
        for name in old | new
        if old.get(name) != new.get(name)
    ]


def _map_leaves(value: Any, name: str) -> dict[str, Any]:
    """The values of nested plain data that hold no others, by their dotted names."""
    if not isinstance(value, dict | list):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {deep: leaf for key, inner in items for deep, leaf in _map_leaves(inner, f"{name}.{key}").items()}


def writer_name() -> str:
    """A name for what this process writes, different from any other process's on any machine."""
    return f"{socket.gethostname()}-{os.getpid()}."
