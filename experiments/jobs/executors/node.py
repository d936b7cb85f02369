"""Checks of a node before its first task: it has the folder and the versions of the process that hands out tasks.

A node without them would fail every task, and since failing is quick, it would get most of them.
"""

import contextlib
import functools
import importlib.metadata
import os
import platform
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import write_atomically

PACKAGES = ("lakewright", "jax", "jaxlib", "numpy", "python-sat")  # on which boards may depend
TOKEN = ".cluster"  # begins the name of the file in a folder by which nodes recognise it
PATIENCE = 30.0  # seconds in which a network disk shows a new file
_ENTERED: list["Home"] = []  # the last one is that of the task which this process works on


class Home(msgspec.Struct, frozen=True):
    """The values a node is compared with. folder: which it must share, and `token`, which it holds; else empty.

    working: the working directory, in which relative paths begin. versions: on which boards may depend.
    """

    working: str
    versions: tuple[tuple[str, str], ...]
    folder: str = ""
    token: str = ""


@contextlib.contextmanager
def mark_home(folder: Path | None) -> Iterator[Home]:
    """Yields the values that nodes must have; the folder is made if it does not exist."""
    here = os.getcwd(), tuple(_map_versions().items())
    if folder is None:
        yield Home(*here)
        return
    # A file of its own: a second command, which is refused only later, must not take the first one's nodes from it.
    home = Home(*here, str(folder.absolute()), secrets.token_hex(8))
    path = _find_token(home)
    write_atomically(path, b"")
    try:
        yield home
    finally:
        path.unlink(missing_ok=True)


@functools.cache
def enter_node(home: Home) -> None:
    """Makes this process one of a node that passed its checks. Raises InputError if versions or folder differ."""
    node, there = socket.gethostname(), _map_versions()
    for name, version in home.versions:
        if there.get(name) != version:
            raise InputError(
                f"node {node}: {name} is {there.get(name, 'missing')}, but {version} where the command runs; "
                "install the same"
            )
    if home.folder and not _has_token(home):
        raise InputError(
            f"node {node}: {home.folder} is a different folder from the one where the command runs; "
            "choose one on a disk that all nodes share"
        )
    with contextlib.suppress(OSError):  # where there is none of that name nothing is relative to it
        os.chdir(home.working)
    _ENTERED.append(home)


def entered() -> Home | None:
    """The values of the node that this process is one of, if it is one."""
    return _ENTERED[-1] if _ENTERED else None


def _map_versions() -> dict[str, str]:
    """Those that matter here; looked up without the packages, which take a second to import."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _find_token(home: Home) -> Path:
    return Path(home.folder) / f"{TOKEN}-{home.token}"


def _has_token(home: Home) -> bool:
    until = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(OSError):
            if _find_token(home).exists():
                return True
        if time.monotonic() > until:
            return False
        time.sleep(1)
