"""Programs of JAX that are traced once and then cached, exported, beside the code that XLA compiled from them.

Tracing and lowering a program of the lake takes several times as long as reading it back. A cached program is read only
for the same versions, platform, settings and source. A file that is missing, damaged or cannot be written costs only
time.
"""

# JAX's own cache holds only what XLA compiled, so each process would trace again. Measured on one core (medians of 5):
# a second `lakewright solve` of 100 boards took 2.44 s of processor time with that cache alone and 1.98 s with this
# one; `generate`, 2.28 s and 1.99 s.

import contextlib
import dataclasses
import functools
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import jax
import jaxlib
import msgspec
from jax import export

from lakewright.core_jax.support.atomic_files import write_atomically
from lakewright.core_jax.support.jax_settings import describe_settings, stated_settings

SOURCE = Path(__file__).parents[1]
P = ParamSpec("P")
R = TypeVar("R")


class CachedProgram(msgspec.Struct, frozen=True):
    """A file of the cache. digest: SHA-256 of `exported`. outputs: what it returns, see `_describe_outputs`."""

    digest: str
    outputs: Any
    exported: bytes


class Program(Generic[P, R]):
    """A function that is jitted, and cached if JAX caches compiled programs (`jax_compilation_cache_dir`).

    It works with our settings of JAX, see `stated_settings`, and raises InputError if JAX cannot work.
    """

    def __init__(self, function: Callable[P, R], static_argnums: Sequence[int], compiler_options: Any) -> None:
        functools.update_wrapper(self, function)
        self._options = _leave_out_stated(compiler_options)
        self.jitted = jax.jit(function, static_argnums=static_argnums, compiler_options=self._options)
        self._function: Callable[..., Any] = function
        self._static = static_argnums
        self._ready: dict[Any, Callable[..., Any]] = {}
        self._lock = threading.Lock()

    @stated_settings()
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        static = tuple(args[number] for number in self._static)
        leaves, tree = jax.tree.flatten(self._drop_static(args))
        if (
            kwargs
            or _find_folder() is None
            or any(isinstance(leaf, jax.core.Tracer) or _is_watched(leaf) for leaf in leaves)
        ):
            return self.jitted(*args, **kwargs)
        types = tuple(map(jax.typeof, leaves))
        kind = (static, tree, types, jax.config.values["jax_debug_key_reuse"], _find_device().platform)
        ready = self._ready.get(kind)
        if ready is None:
            with self._lock:  # one of several threads makes it
                ready = self._ready.get(kind) or self._make_program(kind, args)
                self._ready[kind] = ready
        return ready(*leaves)

    def _cache_size(self) -> int:
        """The number of kinds of arguments that there are programs for, as for a jitted function."""
        return len(self._ready) + self.jitted._cache_size()  # type: ignore[attr-defined]

    def _make_program(self, kind: Any, args: Sequence[Any]) -> Callable[..., Any]:
        """The program for leaves of a kind: read if it is cached, else exported and cached."""
        name = f"{self.__module__}.{self.__qualname__}"  # type: ignore[attr-defined]
        path = _find_folder() / "exported" / f"{self.__name__}-{_make_key(name, kind)}"  # type: ignore[operator,attr-defined]
        cached = _read_cached(path)
        if cached is None:
            cached = self._export_program(args)
            # Under a name of this process, then renamed: processes that start together write the same program, and
            # each reads a whole one.
            with contextlib.suppress(OSError):  # the cache may be read-only, or full
                write_atomically(path, msgspec.msgpack.encode(cached), f"{os.getpid()}.")
        run = jax.jit(export.deserialize(bytearray(cached.exported)).call, compiler_options=self._options)
        return lambda *leaves: _rebuild_outputs(cached.outputs, iter(run(*leaves)))

    def _export_program(self, args: Sequence[Any]) -> CachedProgram:
        outputs: list[Any] = []
        leaves, tree = jax.tree.flatten(self._drop_static(args))

        def call_flat(*leaves: Any) -> list[Any]:
            given = iter(jax.tree.unflatten(tree, leaves))
            # Not the jitted function, as compiler options are not for one within another.
            results = self._function(*(args[n] if n in self._static else next(given) for n in range(len(args))))
            outputs[:] = [_describe_outputs(results)]
            return jax.tree.leaves(results)

        # For the device that this thread computes on: a GPU's process has programs for its processor, too.
        platform = _find_device().platform
        platforms = None if platform == jax.local_devices()[0].platform else [platform]
        exported = bytes(export.export(jax.jit(call_flat), platforms=platforms)(*leaves).serialize())
        return CachedProgram(hashlib.sha256(exported).hexdigest(), outputs[0], exported)

    def _drop_static(self, args: Sequence[Any]) -> list[Any]:
        return [value for number, value in enumerate(args) if number not in self._static]


def program(
    function: Callable[P, R] | None = None, *, static_argnums: int | Sequence[int] = (), compiler_options: Any = None
) -> Any:
    """Like `jax.jit`, for a function of arrays, and of dataclasses and tuples of them, that is worth caching.

    Without a folder for compiled programs, or within another program, it is `jax.jit`. XLA_FLAGS goes before
    `compiler_options`.
    """
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    if function is None:
        return lambda function: Program(function, numbers, compiler_options)
    return Program(function, numbers, compiler_options)


def _leave_out_stated(options: dict[str, str] | None) -> dict[str, str] | None:
    """The options of the compiler that XLA_FLAGS does not state, which would go before it."""
    stated = {flag.partition("=")[0].removeprefix("--") for flag in os.environ.get("XLA_FLAGS", "").split()}
    return {name: value for name, value in (options or {}).items() if name not in stated} or None


def _is_watched(leaf: Any) -> bool:
    """Return True if JAX must check that a key is used once, which it cannot see in an exported program."""
    return jax.config.values["jax_debug_key_reuse"] and jax.dtypes.issubdtype(
        jax.typeof(leaf).dtype, jax.dtypes.prng_key
    )


def _find_folder() -> Path | None:
    folder = jax.config.values["jax_compilation_cache_dir"]
    return Path(folder) if folder else None


def _find_device() -> jax.Device:
    """The device that a program of this thread runs on if its arguments do not choose one."""
    chosen = jax.config.values["jax_default_device"]
    return chosen if isinstance(chosen, jax.Device) else jax.local_devices()[0]


def _make_key(name: str, kind: Any) -> str:
    """The name of a program, a digest of all that decides it; `kind` as text names its classes, shapes and types."""
    device = _find_device()
    # Everything that decides the machine code: another version, device, setting or source has another name, so a
    # stale program is never read.
    versions = (jax.__version__, jaxlib.__version__, device.platform, device.device_kind)
    return hashlib.sha256(repr((name, kind, versions, describe_settings(), _digest_source())).encode()).hexdigest()


@functools.cache
def _digest_source() -> str:
    """The sources the programs are made from: all of the core."""
    files = sorted(SOURCE.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _read_cached(path: Path) -> CachedProgram | None:
    """The cached program, or None if it is missing or damaged."""
    try:
        cached = msgspec.msgpack.decode(path.read_bytes(), type=CachedProgram)
    except (OSError, msgspec.MsgspecError):
        return None
    return cached if hashlib.sha256(cached.exported).hexdigest() == cached.digest else None


def _describe_outputs(value: Any) -> Any:
    """The structure of a result: items of a tuple, class and fields of a dataclass, 0 for an array."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return [_describe_outputs(item) for item in value]
    if dataclasses.is_dataclass(value):
        fields = {field.name: _describe_outputs(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"module": type(value).__module__, "name": type(value).__name__, "fields": fields}
    return 0


def _rebuild_outputs(outputs: Any, leaves: Any) -> Any:
    if outputs is None:
        return None
    if isinstance(outputs, list):
        return tuple(_rebuild_outputs(item, leaves) for item in outputs)
    if isinstance(outputs, dict):
        kind = getattr(sys.modules[outputs["module"]], outputs["name"])  # there, as the program's own module needs it
        return kind(**{name: _rebuild_outputs(field, leaves) for name, field in outputs["fields"].items()})
    return next(leaves)
