"""Sizes of the batches of an accelerator: few, so that few programs are compiled, and within its memory.

A device may be full all the same, or disappear: `make_with_room` makes smaller blocks, or says so in one line.
"""

import dataclasses
import threading
from collections.abc import Callable
from typing import TypeVar

import jax
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.solver.accelerator.cell_sets import word_count
from lakewright.core_jax.support.parallel import list_devices, name_kind, of_block, on_all_cores, workers

A = TypeVar("A")
R = TypeVar("R")
BLOCKS = (1 << 20, 1 << 18, 1 << 14, 1 << 10, 1 << 6)  # boards that are prepared and certified at once
LEAST_BLOCKS = 6  # largest blocks of a batch at least: while one is computed, others are copied
SHARE = 0.5  # of an accelerator's memory that solving takes, all threads together
HOST_MEMORY = 1 << 30  # that it takes on a CPU
HORIZON = 64  # steps of paths for which memory is planned
STATES = 12  # sets of joint states that a layer of a flood takes beside those that are saved
SMALLEST = 32  # boards that are flooded at once
SPARE = 16  # a group's flood ends when 1 / SPARE of its boards are open
LARGEST = 16  # cells on a side of boards that GPUs have labelled; the time to compile for larger ones is unknown
# Likewise of three agents without plans: up to there floods are faster than the host's search by an estimate, see
# docs/accelerators.md. docs/hosts/gpu/core_rates.py measures both; 0 leaves all of these boards to the host.
LARGEST_OF_TEAMS = 8
MOST_PLACES = 1 << 31  # in an array of saved layers, because they are numbered by int32
_rooms: dict[object, threading.Semaphore] = {}  # by device, for as many blocks at a time as have memory


@dataclasses.dataclass(frozen=True)
class Sizes:
    """block: boards at once; flood: boards of these to flood at once; tail: boards left by a flood, again at once."""

    block: int
    flood: int
    tail: int


def suits_device(size: int, more: int = 0) -> bool:
    """Return True if boards of two agents are for the accelerator: of at most LARGEST, and a block fits there.

    Args: size, more: see `choose_sizes`.
    """
    rest = memory_per_thread() - BLOCKS[-1] * (board_bytes(size) + more)
    return size <= LARGEST and can_flood(size, SMALLEST, first_depth(size), rest)


def suits_teams(size: int) -> bool:
    """Return True if boards of three agents, without plans, are for the accelerator."""
    return size <= LARGEST_OF_TEAMS and suits_device(size)


def choose_sizes(size: int, count: int, memory: int, more: int = 0) -> Sizes:
    """The sizes for boards on an accelerator: the largest block that they fill within the memory, or the smallest.

    Raises InputError if not even the smallest sizes fit.

    Args:
        size: n, the cells on a side of the boards.
        count: number of boards.
        memory: bytes that one thread may use.
        more: bytes for each board beside those that solving takes.
    """
    depth = first_depth(size)
    for block in BLOCKS:
        least = max(SMALLEST, block >> 7)
        flood = max(block // (16 if block >= 1 << 18 else 4), SMALLEST)
        rest = memory - block * (board_bytes(size) + more)
        flood = choose_group(size, flood, depth, rest, least)
        enough = count >= (block if block < BLOCKS[0] else LEAST_BLOCKS * block) or block == BLOCKS[-1]
        if enough and can_flood(size, flood, depth, rest):
            return Sizes(block, flood, max(flood // 8, SMALLEST))
    raise make_memory_error(size, block_bytes(size, BLOCKS[-1], SMALLEST) + BLOCKS[-1] * more, memory)


def make_memory_error(size: int, needed: int, memory: int) -> InputError:
    """The error of boards that take more bytes than they may."""
    return InputError(
        f"{size}x{size} boards take at least {needed / 2**20:.0f} MiB on the device, and a thread may take "
        f"{memory / 2**20:.0f} MiB; give more memory, or set JAX_PLATFORMS=cpu"
    )


def cut_sizes(sizes: Sizes) -> Sizes:
    """The next smaller sizes, for a device whose memory is full."""
    block = next(block for block in BLOCKS if block < sizes.block)
    flood = max(sizes.flood * block // sizes.block, SMALLEST)
    return Sizes(block, flood, max(flood // 8, SMALLEST))


def block_bytes(size: int, block: int, flood: int) -> int:
    """The bytes of a block of boards, some flooded at once: the larger parts of live memory."""
    return block * board_bytes(size) + flood_bytes(size, flood, first_depth(size))


def board_bytes(size: int) -> int:
    """The bytes of a board that is prepared and certified."""
    return size * size + word_count(size) * (36 + 16 * HORIZON) + 14 * HORIZON + 64


def flood_bytes(size: int, group: int, depth: int) -> int:
    """The bytes of a group of boards that are flooded at once to a depth, all layers saved."""
    return 4 * word_count(size) * (_count_places(size, group, depth) + STATES * group * size * size)


def choose_group(size: int, block: int, depth: int, memory: int, least: int = SMALLEST) -> int:
    """The most boards of a block that can be flooded at once to a depth, all layers saved.

    Args:
        size: n, the cells on a side of the boards.
        block: boards in a block.
        depth: layers of a flood.
        memory: bytes that a flood may use.
        least: the fewest boards, whether they fit or not.
    """
    group = block
    while group > least and not can_flood(size, group, depth, memory):
        group //= 2
    return group


def can_flood(size: int, group: int, depth: int, memory: int) -> bool:
    """Return True if the layers of a flood fit into the memory and can be numbered.

    Args: size, group, depth, memory: see `choose_group`.
    """
    return flood_bytes(size, group, depth) <= memory and _count_places(size, group, depth) < MOST_PLACES


def _count_places(size: int, group: int, depth: int) -> int:
    """The words of an array that holds all layers of a flood, see `CostLayers`."""
    return group * (3 * depth // 2 + 2) * size * size


def first_depth(size: int) -> int:
    """The largest sum of costs that the first flood looks for; almost no random board costs more."""
    return 4 * size


def memory_per_thread() -> int:
    """The bytes that each of the threads of `on_all_cores` may take on its device, see `make_with_room`."""
    devices = jax.local_devices()
    stated = devices[0].memory_stats() or {}
    memory = int(SHARE * stated["bytes_limit"]) if "bytes_limit" in stated else HOST_MEMORY
    return memory * len(devices) // workers() if "bytes_limit" in stated else memory // workers()


def in_blocks_with_room(function: Callable[[A], R], batch: A, block: int) -> list[R]:
    """`in_blocks` on accelerators: a block for which there is no room is made of several smaller ones.

    Args: function, batch, block: see `in_blocks`.
    """
    batch = jax.tree.map(np.asarray, batch)
    count = len(jax.tree.leaves(batch)[0])

    def make(sizes: Sizes, begin: int) -> R:
        return of_block(function, batch, begin, sizes.block)

    sizes = Sizes(block, SMALLEST, SMALLEST)
    parts = on_all_cores(
        lambda begin: make_with_room(make, sizes, begin, count),
        range(0, count, block),
        name_kind(function, batch, block),
    )
    return [part for some in parts for part in some]


def make_with_room(make: Callable[[Sizes, int], R], sizes: Sizes, begin: int, end: int) -> list[R]:
    """`make` of a block of rows on the default device, or of several smaller blocks if the device's memory is full.

    All threads of a process wait until one of the `memory_per_thread` of their device is free. Blocks are made again
    from their inputs, so nothing of a block that failed is in a result.

    Args:
        make: gets sizes and a first row, makes the `sizes.block` rows from there on, and waits until it has them.
        sizes: the sizes to try first.
        begin: the first row to make.
        end: the number of all rows; a block may reach beyond it, smaller blocks then cover only rows that exist.

    Raises InputError if the device has no room for the smallest block, or cannot go on.
    """
    threads = max(workers() // len(list_devices()), 1)
    room = _rooms.setdefault((jax.config.values["jax_default_device"], threads), threading.Semaphore(threads))
    try:
        with room:
            return [make(sizes, begin)]
    except jax.errors.JaxRuntimeError as error:
        said = str(error).partition("\n")[0]
        if "RESOURCE_EXHAUSTED" not in said or sizes.block <= BLOCKS[-1]:
            raise InputError(
                f"the device stopped at a block of {sizes.block} boards ({said:.200}); free its memory, or set "
                "JAX_PLATFORMS=cpu"
            ) from error
    smaller = cut_sizes(sizes)
    firsts = range(begin, min(begin + sizes.block, end), smaller.block)
    return [part for first in firsts for part in make_with_room(make, smaller, first, end)]
