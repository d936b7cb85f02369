"""Files and folders that exist either complete or not at all: they are written under another name, then renamed.

They are synchronized to the disk before they are renamed, so this also holds for a power cut.
"""

import contextlib
import logging
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCKS = Path("/proc/locks")  # what Linux lists
LOG = logging.getLogger("lakewright")


@contextlib.contextmanager
def replacing(path: str | Path, writer: str = "", synchronized: bool = True) -> Iterator[Path]:
    """Yields a path next to `path` to write to; on success it replaces `path`, otherwise it is removed.

    writer: distinguishes processes that may write the same file at the same time. synchronized: False for a file that
    a power cut may empty. An OSError without a file name, such as from a full disk, gets the name of this file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because only a rename within a file system is atomic.
    beside = path.with_name(f".{path.name}.{writer}part")
    try:
        with name_errors(path):
            yield beside
            if synchronized:
                replace_file(beside, path)
            else:
                os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Yields a new folder next to `path`; on success it becomes `path`, which must not exist yet.

    An OSError without a file name gets the name of this folder.
    """
    path = Path(path)
    beside = path.with_name(f".{path.name}.part")
    shutil.rmtree(beside, ignore_errors=True)  # left by a run that was killed
    beside.mkdir(parents=True)
    try:
        with name_errors(path):
            yield beside
            # Contents first, names second: after a power cut the new name never leads to files that are still in
            # memory.
            for inside in [*beside.rglob("*"), beside]:
                _sync_path(inside)
            rename(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextlib.contextmanager
def name_errors(path: Path) -> Iterator[None]:
    """Names `path` in an OSError that names no file, and turns system errors that Rust libraries raise into one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # one made of words alone would lose them
            error.filename = error.filename or str(path)
        raise
    except Exception as error:
        if found := re.search(r"\(os error (\d+)\)", str(error)):
            number = int(found[1])
            raise OSError(number, os.strerror(number), str(path)) from error
        raise


def replace_file(beside: Path, path: Path) -> None:
    """Renames a written file to `path`, and returns when both its content and its name are on the disk."""
    _sync_path(beside)
    rename(beside, path)


def rename(path: Path, target: Path) -> None:
    """Renames `path` to `target`, and returns when that is on the disk."""
    os.replace(path, target)
    # The name is an entry of the folder: until the folder is on the disk, a power cut can undo the rename.
    _sync_path(target.parent)


def _sync_path(path: Path) -> None:
    """Returns when a file, or the names in a folder, are on the disk. Windows cannot be asked for a folder's."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: str | Path, data: bytes, writer: str = "") -> None:
    """Writes `data` to `path`, completely or not at all; for `writer` see `replacing`."""
    with replacing(path, writer) as beside:
        beside.write_bytes(data)


def write_json(path: str | Path, value: Any, writer: str = "") -> None:
    """Writes a value as indented JSON, completely or not at all; for `writer` see `replacing`."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(value)) + b"\n", writer)


@contextlib.contextmanager
def locked(folder: str | Path, busy: str = "", shared: bool = False, waits: bool = False) -> Iterator[None]:
    """Makes `folder` and keeps other processes out of it, except, if `shared`, those that share it too.

    Args:
        folder: the folder, which may be removed in the block.
        busy: the line about another process that works there.
        shared: whether others that share it may work there, too.
        waits: whether to log `busy` and to wait for the other process.

    Raises InputError, with the text `busy`, if another process works there and nobody waits, if there is a file in its
    place, and on Windows, which has no such locks.
    """
    if fcntl is None:
        raise InputError(f"{folder}: Windows can't lock it (no flock); use Linux, macOS or WSL")
    # The system drops a flock when its process ends, however it ends, so no lock outlives a kill.
    busy = busy or f"{folder}: another process runs here; wait for it, or choose a folder"
    descriptor = _lock_folder(Path(folder), busy, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, waits)
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def holding_file(descriptor: int, path: Path) -> Iterator[None]:
    """Waits for other processes that hold an open file, and holds it in the block.

    path: path of the file, for messages. Raises InputError on Windows, which has no such locks.
    """
    if fcntl is None:
        raise InputError(f"{path}: Windows can't lock it (no flock); use Linux, macOS or WSL")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def refuse_file(folder: Path) -> None:
    """Raises InputError if there is a file in the place of a folder."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; choose a folder")


def is_locked(folder: Path) -> bool:
    """Return True if a process of this machine holds the lock of a folder. Takes no lock to find out.

    False too if the system does not list its locks.
    """
    try:
        held, number = LOCKS.read_text(encoding="utf-8"), folder.stat().st_ino
    except OSError:
        return False
    return any(line.split()[1] == "FLOCK" and f":{number} " in line for line in held.splitlines())


def _lock_folder(folder: Path, busy: str, kind: int, waits: bool) -> int:
    """A descriptor of `folder` that holds its lock."""
    refuse_file(folder)
    at_once = fcntl.LOCK_NB
    while True:
        # The folder itself is locked, not a file in it. Whoever had the lock before may have removed the folder, and
        # the lock then holds nothing: the name must still lead to the folder that is open, or it is made and locked
        # again.
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # removed by a process that has just finished
            continue
        try:
            fcntl.flock(descriptor, kind | at_once)
            if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
                return descriptor
        except BlockingIOError as error:
            if not waits:
                os.close(descriptor)
                raise InputError(busy) from error
            LOG.warning(busy)
            at_once = 0
        except FileNotFoundError:
            pass
        except OSError as error:  # of a file system without locks, or with none left; flock names no file
            os.close(descriptor)
            raise OSError(error.errno, f"{error.strerror} (of its lock)", str(folder)) from error
        os.close(descriptor)
