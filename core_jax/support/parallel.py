"""Blocks of work on all cores and devices.

XLA releases the interpreter lock, and a small program uses only one core: so threads suffice for a few cores. On many
they stand in each other's way, so long commands start processes.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar

import jax
import numpy as np

from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.profiling import REST, WAITING, in_phase
from lakewright.core_jax.support.threads import cores

A = TypeVar("A")
R = TypeVar("R")

_seen: set[object] = set()  # kinds of items that `on_all_cores` has begun, whose programs are compiled
_on_host: ContextVar[bool] = ContextVar("_on_host", default=False)
THREADS_PER_DEVICE = 3  # of an accelerator: while one block is computed, others are copied there and back


@contextlib.contextmanager
def on_host() -> Iterator[None]:
    """Has blocks of this thread worked on by all cores of the host, whatever other devices there are.

    For work that is mostly a search on the host. Its programs run on JAX's platform for CPUs, which is there beside a
    GPU unless JAX_PLATFORMS leaves it out; then they run where JAX computes. So a GPU is free for other threads.
    """
    before = _on_host.set(True)
    try:
        with stated_settings(), jax.default_device(list_devices()[0]):
            yield
    finally:
        _on_host.reset(before)


def list_devices() -> list[jax.Device]:
    """The devices that blocks of this thread are worked on."""
    if _on_host.get():
        with contextlib.suppress(RuntimeError):  # JAX_PLATFORMS names no CPU
            return jax.local_devices(backend="cpu")
    return jax.local_devices()


@stated_settings()
def workers() -> int:
    """The number of blocks worked on at a time: one for each core of a CPU, else a few for each device."""
    devices = list_devices()
    is_host = _on_host.get() or devices[0].platform == "cpu"
    return cores() if is_host else THREADS_PER_DEVICE * len(devices)


@stated_settings()
def on_gpu() -> bool:
    """Return True if JAX computes on GPUs."""
    return list_devices()[0].platform == "gpu"


@stated_settings()
def on_all_cores(function: Callable[[A], R], items: Sequence[A], kind: object = None) -> list[R]:
    """`function` of every item, in order; items alternate between the devices of this process.

    Computations on arrays without a chosen device run on the device of their item. A new program is compiled once for
    each device, while other blocks wait for it.

    Args:
        function: applied to every item.
        items: the work.
        kind: names items that need the same programs. The first item of a new kind runs alone, because it may compile.
    """
    if kind is not None and kind not in _seen and len(items):
        _seen.add(kind)
        return [*on_all_cores(function, items[:1]), *on_all_cores(function, items[1:])]
    devices = list_devices()

    def on_device(place: int) -> R:
        with stated_settings(), jax.default_device(devices[place % len(devices)]):
            return function(items[place])

    if len(items) < 2 or workers() < 2:
        return [on_device(place) for place in range(len(items))]
    with ThreadPoolExecutor(workers()) as pool:
        results = pool.map(lambda place: in_phase(REST, on_device, place), range(len(items)))
        return in_phase(WAITING, list, results)


def in_blocks(function: Callable[[A], R], batch: A, block: int) -> list[R]:
    """`function` of every `block` rows of a batch of arrays: the results as numpy arrays, in order.

    The last block is filled up with copies of the last row, whose results are dropped: one program serves all blocks.
    """
    batch = jax.tree.map(np.asarray, batch)
    begins = range(0, len(jax.tree.leaves(batch)[0]), block)
    kind = name_kind(function, batch, block)
    return on_all_cores(lambda begin: of_block(function, batch, begin, block), begins, kind)


def of_block(function: Callable[[A], R], batch: A, begin: int, block: int) -> R:
    """`function` of one block of rows, filled up as in `in_blocks`, whose arguments these are.

    Args: function, batch, block: see there; begin, the first row.
    """
    count = len(jax.tree.leaves(batch)[0])
    rows = np.minimum(np.arange(begin, begin + block), count - 1)
    answer = function(jax.tree.map(lambda field: field[rows], batch))
    return jax.tree.map(lambda field: np.asarray(field)[: count - begin], answer)


def name_kind(function: Callable[[A], R], batch: A, block: int) -> object:
    """The kind of blocks, see `on_all_cores`, of a function of arrays."""
    return (function.__qualname__, block, *(field.shape[1:] for field in jax.tree.leaves(batch)))
