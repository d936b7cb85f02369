"""Files and folders that are there whole or not at all: written beside, then renamed."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from core_jax.errors import InputError


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yields a path beside `path` to write to; on success it takes the place of `path`, else it is removed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Yields a new folder beside `path`; on success it becomes `path`, which must not exist yet."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.part")
    shutil.rmtree(beside, ignore_errors=True)  # left by a run that was killed
    beside.mkdir(parents=True)
    try:
        yield beside
        os.rename(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_atomically(path: str | Path, data: bytes) -> None:
    """Writes `data` to `path`, whole or not at all."""
    with replacing(path) as beside:
        beside.write_bytes(data)


@contextlib.contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Makes `folder` and keeps other processes from working in it. Raises InputError where one does."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{folder}: another process runs here; wait for it, or choose a folder") from error
        yield
