"""Functions compiled by numba for the host, and the cache of their machine code.

Only functions that Python calls are cached: their machine code includes all functions they call, which need not
be compiled then, nor even read. numba stores machine code under a key of its own, but it only looks at the file of a
function, not at those that the function calls. So the folder is named by a digest of all that decides machine code: the
sources of the function's room, which must hold all that it calls, the processor, and the versions of numba and LLVM.
"""

# With explicit signatures and numba's cache for every function, each start read 0.44 s of processor time instead of
# 0.30 s (medians of 5), and a change of a called function in another file would have gone unnoticed.

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

import llvmlite
import llvmlite.binding
import numba

F = TypeVar("F", bound=Callable[..., Any])

MARK = ".kept"  # the ending of an empty file that says that a function is cached
_config: Any = numba.config  # made at run time
_waiting: dict[Path, dict[str, list[Any]]] = {}  # functions that are yet to be compiled, by room and file
_lock = threading.Lock()


def compiled(function: F) -> F:
    """`function`, to be compiled by `compile_all` for the types of its annotations; it leaves the interpreter free."""
    before = _config.CACHE_DIR
    _config.CACHE_DIR = str(cache_folder(_find_room(function)))
    try:
        return _register_function(function, nogil=True, cache=True)
    finally:
        _config.CACHE_DIR = before


def compiled_within(function: F) -> F:
    """Like `compiled`, for a function that compiled functions of its room call, and Python never."""
    return _register_function(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _register_function(function: F, **options: Any) -> F:
    made = numba.njit(boundscheck=False, error_model="numpy", **options)(function)
    _waiting.setdefault(_find_room(function), {}).setdefault(function.__module__, []).append(made)
    return typing.cast(F, made)


def _find_room(function: Callable[..., object]) -> Path:
    return Path(function.__code__.co_filename).parent


def compile_all() -> None:
    """Compiles all functions that are known, or reads them from the cache; to be called before any of them is.

    Each for one set of types: otherwise numba compiles a function again for every constant that it is called with.
    Files import what they call, and in a file callers stand before what they call.
    """
    with _lock:
        for room, files in list(_waiting.items()):  # another thread may import more
            # In reverse within a file, because callers stand before what they call: the called functions are compiled
            # first.
            functions = [function for file in files.values() for function in reversed(file)]
            called = [function for function in functions if not function.targetoptions.get("no_cpython_wrapper")]
            if called:
                _compile_room(cache_folder(room), functions, called)
                files.clear()


def _compile_room(folder: Path, functions: list[Any], called: list[Any]) -> None:
    """Compiles functions of a room; only those `called` by Python if `folder` has all of these."""
    marks = [folder / f"{function.py_func.__name__}{MARK}" for function in called]
    for function in called if all(mark.exists() for mark in marks) else functions:
        function.compile(_read_signature(function.py_func))
        function.disable_compile()
    for mark in marks:
        mark.touch()


def _read_signature(function: Callable[..., object]) -> Any:
    """An int is int64, a bool a boolean; other annotations hold the type of numba."""
    hints = typing.get_type_hints(function, include_extras=True)
    result = _read_type(hints.pop("return"))
    return result(*map(_read_type, hints.values()))


def _read_type(hint: Any) -> Any:
    plain = {int: numba.int64, bool: numba.boolean, type(None): numba.void}
    return plain[hint] if hint in plain else hint.__metadata__[0]


@functools.cache
def cache_folder(room: Path) -> Path:
    """The first folder of `_list_candidates` that can be written, or a copy of one that can only be read.

    Else a private one, which is removed with the process.
    """
    for folder in _list_candidates(room):
        if _is_writable(folder):
            return folder
        if any(folder.glob(f"*{MARK}")):
            return Path(shutil.copytree(folder, _make_private_folder() / folder.name))
    return _make_private_folder()


def _list_candidates(room: Path) -> Iterator[Path]:
    name = f"lakewright-{digest_room(room)}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / name
    yield room / "__pycache__" / name
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakewright" / name


def _make_private_folder() -> Path:
    private = Path(tempfile.mkdtemp(prefix="lakewright-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


def digest_room(room: Path) -> str:
    """A digest of all sources of a room, of their paths and times, which numba looks at, and of their compiler."""
    found = hashlib.sha256(repr((str(room.absolute()), describe_machine())).encode())
    for source in sorted(room.glob("*.py")):
        found.update(repr((source.name, source.stat().st_mtime_ns, source.read_bytes())).encode())
    return found.hexdigest()[:16]


def describe_machine() -> tuple[str, ...]:
    """The processor that machine code is made for, and the versions of the compiler."""
    processor = llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()
    return (*processor, numba.__version__, llvmlite.__version__)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
