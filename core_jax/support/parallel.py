"""Blocks of work on all cores and devices.

XLA leaves the interpreter free, and one small program uses one core only: so threads serve.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax
import numpy as np

from core_jax.support.profiling import REST, WAITING, in_phase

A = TypeVar("A")
R = TypeVar("R")

THREADS_PER_DEVICE = 2  # of an accelerator: while one block is computed, the next is prepared


def workers() -> int:
    """How many blocks are worked on at once: on CPUs one a core, else a few a device."""
    devices = jax.local_devices()
    return cores() if devices[0].platform == "cpu" else THREADS_PER_DEVICE * len(devices)


def on_all_cores(function: Callable[[A], R], items: Sequence[A]) -> list[R]:
    """`function` of every item, in order, the items dealt to this process's devices in turn.

    What `function` computes from arrays that no device was chosen for runs on the device of its item. A program that
    is not there yet is compiled once for each device, while other blocks wait for it.
    """
    devices = jax.local_devices()

    def on_device(place: int) -> R:
        with jax.default_device(devices[place % len(devices)]):
            return function(items[place])

    if len(items) < 2 or workers() < 2:
        return [on_device(place) for place in range(len(items))]
    with ThreadPoolExecutor(workers()) as pool:
        found = pool.map(lambda place: in_phase(REST, on_device, place), range(len(items)))
        return in_phase(WAITING, list, found)


def cores() -> int:
    """How many cores this process may use: NPROC where it is set, which XLA heeds, too."""
    return int(os.environ.get("NPROC") or len(os.sched_getaffinity(0)))


def in_blocks(function: Callable[[A], R], batch: A, block: int) -> list[R]:
    """`function` of every `block` rows of a batch of arrays, its answers as numpy arrays, in order.

    The last block is filled up with the last row, and what comes of that left out: one program serves all.
    """
    batch = jax.tree.map(np.asarray, batch)
    count = len(jax.tree.leaves(batch)[0])

    def of_block(begin: int) -> R:
        rows = np.minimum(np.arange(begin, begin + block), count - 1)
        answer = function(jax.tree.map(lambda field: field[rows], batch))
        return jax.tree.map(lambda field: np.asarray(field)[: count - begin], answer)

    begins = range(0, count, block)  # the first alone, as it may compile
    return [of_block(begins[0]), *on_all_cores(of_block, begins[1:])]
