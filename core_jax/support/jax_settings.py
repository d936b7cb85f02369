"""The settings of JAX that our programs are made and run with, and the process that may run them.

Flags of JAX change types, random numbers and checks of everything in a process. Ours are stated here and hold while our
code runs, in its thread: what the process has set for its own programs changes no board, label or verdict.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from jax._src import xla_bridge  # nothing public tells whether JAX has started

from lakewright.core_jax.errors import InputError

# Each is a context manager of JAX, and a flag by the name of `jax_` and this one.
STATED: dict[str, Any] = {
    "enable_x64": False,
    "numpy_dtype_promotion": "standard",
    "numpy_rank_promotion": "allow",
    "threefry_partitionable": True,
    "default_prng_impl": "threefry2x32",
    "enable_custom_prng": False,
    "legacy_prng_key": "allow",
    "default_matmul_precision": None,
    "transfer_guard": "allow",
    "debug_nans": False,
    "debug_infs": False,
    "check_tracer_leaks": False,
    "disable_jit": False,
    "no_tracing": False,
    "no_execution": False,
}
NUMBERS = ("enable_x64", "numpy_dtype_promotion", "threefry_partitionable")  # could change boards if they were not ours
DEFAULT = "jax_default_device"
PLATFORMS = ("jax_platform_name", DEFAULT, "jax_platforms")  # the flags that name what a process runs on
XLA_THREAD = "tf_"  # how the names of some threads begin that JAX's platform for CPUs starts
_within = threading.local()
_own: list[int] = []  # the process that has been seen to have platforms of its own; a fork finds its parent here


@contextlib.contextmanager
def stated_settings() -> Iterator[None]:
    """Has JAX in this thread work with the STATED settings until the end of the block.

    Raises InputError if JAX cannot work in this process: see `check_process`.
    """
    if getattr(_within, "entered", False):
        yield
        return
    check_process()
    with contextlib.ExitStack() as stack:
        for name, value in STATED.items():
            stack.enter_context(getattr(jax, name)(value))
        stack.callback(setattr, _within, "entered", False)
        _within.entered = True
        yield


def describe_settings() -> dict[str, str]:
    """The settings that boards would depend on if they were not stated, by the names of their flags."""
    return {f"jax_{name}": str(STATED[name]) for name in NUMBERS}


def check_process() -> None:
    """Raises InputError if JAX would wait for ever or has nothing to run on.

    That is in a process forked after JAX had started because the threads that JAX waits for are not in it; and where a
    flag names a platform that is not there.
    """
    process = os.getpid()
    if process in _own:
        return
    if xla_bridge.backends_are_initialized() and (_own or not _has_threads_of_jax()):
        raise InputError(
            f'process {process} was forked after JAX had started, and JAX does not work in it; start it by "spawn" or '
            '"forkserver" (of multiprocessing, of a context), or do without workers (num_workers=0 of a DataLoader)'
        )
    given = jax.config.values
    try:
        jax.local_devices()
        if isinstance(given[DEFAULT], str):  # which JAX reads only when it makes an array
            jax.local_devices(backend=given[DEFAULT])
    except (RuntimeError, AssertionError) as error:
        said = str(error).partition("\n")[0].partition(" (")[0].rstrip(".") or "it is not there"
        flag = next((name for name in PLATFORMS if given[name]), PLATFORMS[-1])
        raise InputError(
            f"JAX cannot start, {flag.upper()} is {given[flag]!r:.60}: {said:.200}; set it to cpu, or leave it out"
        ) from error
    _own[:] = [process]


def _has_threads_of_jax() -> bool:
    """Whether this process has the threads that the platforms of JAX started; a fork lacks them."""
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    if any(name.startswith(XLA_THREAD) for name in names) or not names:  # without /proc nothing is known
        return True
    return jax.default_backend() != "cpu" and len(names) > threading.active_count()
