"""Boards for two agents drawn on accelerators: a block of boards stays there until all of it is drawn and labelled.

A block takes five programs, and a few more if boards need many attempts: `begin_boards`, `continue_boards`,
`find_makespans`, and the packing of boards and labels, which are copied back while other blocks are at work. The host
asks once how many boards are open.
"""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np

from lakewright.core_jax.generator.device_attempts import (
    Stream,
    begin_boards,
    continue_boards,
    count_open,
    find_makespans,
    lengthen_plans,
)
from lakewright.core_jax.solver.accelerator.cell_sets import word_count
from lakewright.core_jax.solver.accelerator.device_solver import DeviceLabels, copy_back
from lakewright.core_jax.solver.accelerator.packing import (
    PackedBoards,
    PackedLabels,
    make_empty_boards,
    make_empty_labels,
    pack_boards,
    write_boards,
    write_labels,
)
from lakewright.core_jax.solver.accelerator.sizes import (
    SMALLEST,
    SPARE,
    Sizes,
    can_flood,
    choose_group,
    first_depth,
    flood_bytes,
    make_memory_error,
    make_with_room,
    memory_per_thread,
)
from lakewright.core_jax.support.parallel import on_all_cores
from lakewright.core_jax.types import Board, Labels

BLOCKS = (1 << 18, 1 << 16, 1 << 14, 1 << 12)  # boards drawn at once
LEAST_BLOCKS = 3  # largest blocks of a batch at least: while one is computed, others are copied
RETRIED_PART = 4  # 1 / RETRIED_PART of a group is tried again at once: a fifth of the boards need it
DEPTH_FACTOR = 2  # how many times as deep the floods of boards go that are tried again
ROUNDS = 64  # groups of further attempts between two looks of the host


@dataclasses.dataclass(frozen=True)
class DrawnBoards:
    """B boards and their labels, numpy arrays, and which attempt at each made it, int [B].

    If a board was not found, its number is at least the number of attempts allowed, and there are neither boards nor
    labels; the numbers of other boards may be missing.
    """

    boards: Board
    labels: Labels
    number: np.ndarray


@dataclasses.dataclass(frozen=True)
class _Block:
    """A block in memory of the host: its boards, their labels, and the attempts that made them, int32 [B]."""

    boards: PackedBoards
    labels: PackedLabels
    number: np.ndarray


def draw_boards(
    size: int,
    holes: int,
    keys: jax.Array,
    wait: np.ndarray,
    index: np.ndarray,
    most: int,
    on_progress: Callable[[int], object],
) -> DrawnBoards:
    """Draws boards for two agents in their strata: each by the lowest attempt at it that has the stratum.

    Raises InputError if the device has no room for the smallest block, or cannot go on.

    Args:
        size: n, the cells on a side of the boards.
        holes: number of holes on a board.
        keys: [2], for the strata without and with a forced wait.
        wait: bool [B], the strata.
        index: int [B], the boards.
        most: the most attempts at a board.
        on_progress: gets numbers of finished boards.
    """
    count, sizes = len(wait), choose_draw_sizes(size, len(wait), memory_per_thread())
    begins = range(0, count, sizes.block)
    is_missing = False

    def draw_block(sizes: Sizes, begin: int) -> _Block:
        rows = np.minimum(np.arange(begin, begin + sizes.block), count - 1)
        first = np.zeros(sizes.block, np.int32)
        stream = Stream(np.int32(holes), keys, wait[rows], index[rows].astype(np.uint32), first)  # type: ignore[arg-type]
        return _draw_block(size, sizes, stream, most)

    def draw_from(begin: int) -> list[_Block]:
        nonlocal is_missing
        if is_missing:  # in another block, so that no result is of use
            return []
        made = make_with_room(draw_block, sizes, begin, count)
        is_missing = is_missing or any(bool((some.number >= most).any()) for some in made)
        on_progress(min(sizes.block, count - begin))
        return made

    blocks = [
        block for some in on_all_cores(draw_from, begins, (draw_boards.__qualname__, size, sizes)) for block in some
    ]
    number = np.concatenate([block.number for block in blocks])[:count]
    if is_missing:
        return DrawnBoards(make_empty_boards(0, size), make_empty_labels(0, 0), number)
    boards, labels = make_empty_boards(count, size), make_empty_labels(count, max(b.labels.horizon for b in blocks))
    begin = 0
    for block in blocks:
        write_boards(boards, begin, block.boards)
        write_labels(labels, begin, block.labels)
        begin += len(block.number)
    return DrawnBoards(boards, labels, number)


def suits_device(size: int) -> bool:
    """Return True if a block of boards for two agents can be drawn in the accelerator's memory."""
    return can_flood(size, SMALLEST, flood_depth(size), memory_per_thread() - BLOCKS[-1] * _board_bytes(size))


def choose_draw_sizes(size: int, count: int, memory: int) -> Sizes:
    """The sizes for drawing boards: the largest block that they fill within the memory, or the smallest.

    Raises InputError if not even the smallest sizes fit.

    Args:
        size: n, the cells on a side of the boards.
        count: number of boards.
        memory: bytes that one thread may use.
    """
    depth = flood_depth(size)
    for block in BLOCKS:
        # Small blocks wait for launches, so a batch is cut only into the largest.
        enough = count >= (LEAST_BLOCKS * block if block == BLOCKS[0] else block) or block == BLOCKS[-1]
        rest = memory - block * _board_bytes(size)
        group = choose_group(size, block, depth, rest, max(SMALLEST, block >> 7))
        if enough and can_flood(size, group, depth, rest):
            return Sizes(block, group, max(group // 8, SMALLEST))
    needed = BLOCKS[-1] * _board_bytes(size) + flood_bytes(size, SMALLEST, depth)
    raise make_memory_error(size, needed, memory)


def _board_bytes(size: int) -> int:
    """The bytes of a board beside its flood: its random numbers, and before and after an attempt its map and plan."""
    return 14 * size * size + 2 * (4 * word_count(size) + DEPTH_FACTOR * flood_depth(size) + 32)


def flood_depth(size: int) -> int:
    """The depth of the first floods of maps: at a hole ratio of 0.3, 94 of 100 come to their end within it."""
    return first_depth(size) + 4


def find_met(size: int, holes: int, keys: jax.Array, wait: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Tries attempts at board 0: bool [L], those that have their stratum; L a number of `BLOCKS`.

    Raises InputError like `draw_boards`.

    Args:
        size, holes, keys: see `draw_boards`.
        wait: bool [L], strata.
        number: int [L], numbers of attempts.
    """

    def try_block(sizes: Sizes, begin: int) -> np.ndarray:
        rows = slice(begin, begin + sizes.block)
        asked, index = number[rows].astype(np.int32), np.zeros(sizes.block, np.uint32)
        flooding = _Flooding(size, sizes, Stream(np.int32(holes), keys, wait[rows], index, asked))  # type: ignore[arg-type]
        while (undecided := flooding.progress.is_open & (flooding.progress.number == asked)).any():
            # A round decides an attempt or makes further ones as well, which are of no interest here.
            flooding.progress = flooding.progress.replace(is_open=undecided)
            flooding.go_on(rounds=1)
        return np.asarray(~flooding.progress.is_open & (flooding.progress.number == asked))

    sizes = choose_draw_sizes(size, len(number), memory_per_thread())
    return np.concatenate(make_with_room(try_block, sizes, 0, len(number)))


class _Flooding:
    """Attempts at a block of boards, on the device."""

    def __init__(self, size: int, sizes: Sizes, stream: Stream) -> None:
        self._size, self._stream = size, stream
        depth, spare = flood_depth(size), np.int32(sizes.flood // SPARE)
        self._group, self._depth = max(sizes.flood // RETRIED_PART, SMALLEST), DEPTH_FACTOR * depth
        self.progress = begin_boards(size, depth, self._depth, sizes.flood, stream, spare)

    def _go_deeper(self) -> None:
        """Makes later floods deeper. They save more layers, so fewer boards are flooded at once."""
        self._depth, self._group = DEPTH_FACTOR * self._depth, max(self._group // DEPTH_FACTOR, SMALLEST)
        self.progress = lengthen_plans(self._depth, self.progress)

    def go_on(self, rounds: int) -> tuple[bool, int]:
        """Makes further attempts at the open boards, at most some rounds.

        Returns: whether any is still open, and the highest number of an attempt that is yet to be made.
        """
        self.progress = continue_boards(
            self._size, self._depth, self._group, self._stream, self.progress, np.int32(rounds)
        )
        can_go, deep, highest = np.asarray(count_open(self.progress)).tolist()
        if deep and not can_go:  # a map whose flood is not at its end yet; at usual hole ratios none was seen
            self._go_deeper()
            self.progress = self.progress.replace(is_deep=self.progress.is_deep & False)
        return can_go + deep > 0, highest


def _draw_block(size: int, sizes: Sizes, stream: Stream, most: int) -> _Block:
    """Makes attempts at boards until all are drawn, or the first `most` at one have failed; copies them back."""
    flooding = _Flooding(size, sizes, stream)
    is_open, highest = True, 0
    while is_open and highest < most:
        is_open, highest = flooding.go_on(ROUNDS)
    made = flooding.progress
    packed = pack_boards(size, made.free, made.cells)
    for field in (*packed, made.number):
        field.copy_to_host_async()
    makespan = find_makespans(
        size, sizes.flood, sizes.tail, made.free, made.cells, made.cost, np.int32(sizes.flood // SPARE)
    )
    # The start was picked among the states of the stratum, so the stratum is the label.
    labels = DeviceLabels(makespan, made.cost, stream.wait, ~made.is_open, made.moves, 0)
    return _Block(PackedBoards(*map(np.asarray, packed)), copy_back(sizes, labels), np.asarray(made.number))
