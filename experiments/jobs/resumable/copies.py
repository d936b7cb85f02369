"""Copies of finished results at an address of fsspec: a folder of another disk, or a bucket such as s3://results/a.

Work itself stays in a folder because it resumes by locks and by renaming, which object stores do not have. A copy is
there
whole or not at all: it is written in a transaction of fsspec, so an object is seen once all of it was sent, and a file
on a disk is written beside and moved. A file is not copied again if one of the same size exists.
"""

import functools
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError

WEIGHTS = {"checkpoint", "engineer", "best"}  # the folders that are not copied
MOST_SHOWN = 200  # characters of an error of a store


@functools.cache
def open_copies(address: str, claim: Path) -> "Copies":
    """The copies at an address, opened once in each process. For the arguments see `Copies`."""
    return Copies(address, claim)


class Copies:
    """The copies at an address, one of which says what work they are of.

    address: as fsspec takes it; one without a protocol is a folder. claim: the file that identifies the work.

    Raises InputError if the address cannot be written, its protocol needs a package that is missing, or it holds
    copies of other work.
    """

    def __init__(self, address: str, claim: Path) -> None:
        self.address = address
        self._system, self._root = _open_address(address)
        path = f"{self._root}/{claim.name}"
        try:
            other = self._system.exists(path) and self._system.cat_file(path) != claim.read_bytes()
        except Exception as error:
            raise _refuse_address(address, error) from error
        if other:
            raise InputError(f"--copy-to {address}: {claim.name} there belongs to other work; choose another address")
        self.add([claim], claim.parent)

    def add(self, files: Sequence[Path], folder: Path, *, again: bool = False) -> None:
        """Copies files, the last one last, to their places in `folder`. again: also those that exist.

        Raises InputError if the address cannot be written.
        """
        names = {file: file.relative_to(folder).as_posix() for file in files}
        try:
            there = (
                {}
                if again or not files
                else self._map_sizes(os.path.commonpath([file.parent for file in files]), folder)
            )
            for file, name in names.items():
                if there.get(name) != file.stat().st_size:
                    self._copy_file(file, f"{self._root}/{name}")
        except FileNotFoundError:
            raise
        except Exception as error:
            raise _refuse_address(self.address, error) from error

    def _map_sizes(self, part: str, folder: Path) -> dict[str, int]:
        """The size of each copy of the files in a part of `folder`, by its name."""
        root = f"{self._root}/{Path(part).relative_to(folder).as_posix()}".removesuffix("/.")
        found = self._system.find(root, detail=True)
        return {str(name).removeprefix(f"{self._root}/"): one["size"] for name, one in found.items()}

    def _copy_file(self, file: Path, path: str) -> None:
        self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
        with file.open("rb") as source, self._system.transaction, self._system.open(path, "wb") as target:
            shutil.copyfileobj(source, target)


def list_results(folder: Path) -> list[Path]:
    """The results and logs in a folder and those below it: everything but weights and what is hidden."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if not _is_left_out(path.relative_to(folder).parts)]


def _is_left_out(parts: tuple[str, ...]) -> bool:
    return not WEIGHTS.isdisjoint(parts) or any(part.startswith(".") for part in parts)


def check_address(address: str) -> None:
    """Writes a file at an address and removes it. Raises InputError if it cannot."""
    system, root = _open_address(address)
    probe = f"{root}/.{secrets.token_hex(8)}"
    try:
        system.makedirs(root, exist_ok=True)
        system.pipe_file(probe, b"lakewright")
        system.rm_file(probe)
    except Exception as error:
        raise _refuse_address(address, error) from error


def _open_address(address: str) -> tuple[Any, str]:
    import fsspec  # which torch installs

    try:
        system, root = fsspec.core.url_to_fs(address)
    except Exception as error:  # a missing package, an unknown protocol, or a store without a key
        raise _refuse_address(address, error) from error
    return system, str(root).rstrip("/")


def _refuse_address(address: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:MOST_SHOWN] or type(error).__name__
    return InputError(
        f"--copy-to {address:.100}: cannot be written ({reason}); check the address and your rights there"
    )
