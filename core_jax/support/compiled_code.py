"""Functions compiled by numba for the host, and where their machine code is kept.

numba keeps machine code under a key of its own version, the processor and the types of the arguments, but it only looks
at the file of a function, not at those that the function calls. So the folder is named by a digest of all sources of
the function's room, which must hold what it calls: code of other sources is never found.
"""

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
import threading
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

_config: Any = numba.config  # made at run time
_waiting: dict[str, list[Any]] = {}  # functions that are yet to be compiled, by file
_lock = threading.Lock()


def compiled(function: F) -> F:
    """`function`, to be compiled by `compile_all` for the types of its annotations; it leaves the interpreter free."""
    before = _config.CACHE_DIR
    _config.CACHE_DIR = str(cache_folder(Path(function.__code__.co_filename).parent))
    try:
        made = numba.njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")(function)
    finally:
        _config.CACHE_DIR = before
    _waiting.setdefault(function.__module__, []).append(made)
    return typing.cast(F, made)


def compile_all() -> None:
    """Compiles all functions that are known, or reads them from the cache; to be called before any of them is.

    Each for one set of types: left alone, numba compiles a function anew for every constant that it is called with.
    Files import what they call, and in a file callers stand before what they call.
    """
    with _lock:
        for functions in _waiting.values():
            while functions:
                functions[-1].compile(_signature(functions[-1].py_func))
                functions.pop().disable_compile()


def _signature(function: Callable[..., object]) -> Any:
    """An int is int64, a bool a boolean; other annotations hold the type of numba."""
    hints = typing.get_type_hints(function, include_extras=True)
    result = _type_of(hints.pop("return"))
    return result(*map(_type_of, hints.values()))


def _type_of(hint: Any) -> Any:
    plain = {int: numba.int64, bool: numba.boolean, type(None): numba.void}
    return plain[hint] if hint in plain else hint.__metadata__[0]


@functools.cache
def cache_folder(room: Path) -> Path:
    """The first folder of `_candidates` that can be written; else a private one that goes with the process."""
    for folder in _candidates(room):
        if _writable(folder):
            return folder
    private = Path(tempfile.mkdtemp(prefix="lakewright-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


def _candidates(room: Path) -> Iterator[Path]:
    name = f"lakewright-{digest(room)}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / name
    yield room / "__pycache__" / name
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakewright" / name


def digest(room: Path) -> str:
    """Of all sources of a room."""
    sources = sorted(room.glob("*.py"))
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
