"""Statistics of free draws for two agents, made without leaving the device: drawn, labelled, measured, then copied.

Only the columns that are asked for are computed and copied, a byte each. A block's columns are finished on the host
while the device is at the next blocks.
"""

from collections.abc import Collection

import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.generator.uniform_boards import draw_free, draw_there, make_stream
from lakewright.core_jax.solver.accelerator.cell_sets import CellSet
from lakewright.core_jax.solver.accelerator.device_solver import DeviceLabels, label_cells
from lakewright.core_jax.solver.accelerator.packing import unload_boards
from lakewright.core_jax.solver.accelerator.shortest_paths import IDLE
from lakewright.core_jax.solver.accelerator.sizes import (
    Sizes,
    choose_sizes,
    make_with_room,
    memory_per_thread,
    suits_device,
)
from lakewright.core_jax.solver.solver import solve
from lakewright.core_jax.statistics.board_features import (
    COLUMNS,
    LABELS,
    MEASURED,
    blank_labels,
    count_board_features,
    features,
    join_measured,
)
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import on_all_cores, on_host
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import WAIT, Board, Certificate, Status

COUNTED = (*LABELS, "plan_length", "plan_waits", "manhattan", *MEASURED)  # on the device, in this order
NEEDED = {  # by columns that are computed from others, or are blank without a plan
    "makespan_gap": ("makespan", "makespan_bound"),
    "cost_gap": ("sum_of_costs", "cost_bound"),
    "density": ("free_cells",),
    "branching": ("free_cells", "links"),
    **{name: (name, "status") for name in ("wait_required", "plan_length", "plan_waits")},
}
FRACTIONS = ("density", "branching")  # the others are numbers, of which NONE is one
MEASURED_BYTES = 1 << 12  # of memory for each board that is measured
NARROW = 255  # the byte that means NONE: a block with a number from here on is copied as int16


@stated_settings()
def measure_draws(
    size: int, holes: int, seed: int, first: int, count: int, columns: Collection[str] = tuple(COLUMNS)
) -> dict[str, np.ndarray]:
    """Like `features` of the boards of `draw_free` for two agents and the labels of `solve`; only numbers are copied.

    Boards that do not suit the device, see `solve`, are drawn and measured on the host. Raises InputError if the device
    has no room for the smallest block, or cannot go on.

    Args:
        size: n, the cells on a side of the boards.
        holes: number of holes on a board.
        seed: seed of the set.
        first: the index of the first board.
        count: boards to draw.
        columns: the statistics to return.
    """
    if not suits_device(size, MEASURED_BYTES):
        with on_host():
            drawn = draw_free(size, 2, holes, seed, first, count)
            return features(drawn, solve(drawn), columns)
    key, sizes, names = make_stream(size, 2, holes, seed), choose_measured_sizes(size, count), list_counted(columns)
    statistics = {name: np.empty(count, np.float32 if name in FRACTIONS else np.int16) for name in columns}

    def measure_block(sizes: Sizes, begin: int) -> None:
        index = np.arange(begin, begin + sizes.block, dtype=np.uint32) + np.uint32(first)
        boards, free, cells = _draw_block(size, key, index, np.int32(holes))
        labels = label_cells(size, sizes, free, cells)
        numbers = _copy_numbers(_count_numbers(names, labels, boards))
        _write_columns(statistics, begin, dict(zip(names, numbers, strict=True)))

    kind = (measure_draws.__qualname__, size, sizes, names)
    on_all_cores(lambda begin: make_with_room(measure_block, sizes, begin, count), range(0, count, sizes.block), kind)
    return statistics


def list_counted(columns: Collection[str]) -> tuple[str, ...]:
    """The numbers, of COUNTED, that some columns are made from."""
    needed = {number for name in columns for number in NEEDED.get(name, (name,))}
    return tuple(name for name in COUNTED if name in needed)


def choose_measured_sizes(size: int, count: int) -> Sizes:
    """The sizes for a number of boards that are measured, too."""
    return choose_sizes(size, count, memory_per_thread(), MEASURED_BYTES)


@program(static_argnums=0)
def _draw_block(size: int, key: jax.Array, index: jax.Array, holes: jax.Array) -> tuple[Board, CellSet, jax.Array]:
    """B boards, their free cells, V words uint32 [B], and their starts and goals, int32 [4, B]."""
    boards = draw_there(size, 2, key, index, holes)
    return boards, *unload_boards(size, boards)


def _count_numbers(names: tuple[str, ...], labels: DeviceLabels, boards: Board) -> tuple[jax.Array, ...]:
    label = (labels.makespan, labels.cost, labels.wait, labels.flooded, labels.moves)
    return _join_numbers(names, label, boards)


@program(static_argnums=0)
def _join_numbers(
    names: tuple[str, ...], label: tuple[jax.Array, ...], boards: Board
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Some of COUNTED of B boards: uint8 [C, B], NARROW for NONE; whether all fit so, bool []; and int16 [C, B].

    Args:
        names: some of COUNTED, in its order.
        label: makespans, costs, waits, whether flooded, and moves.
        boards: the boards that were labelled.
    """
    makespan, cost, wait, flooded, moves = label
    solvable = cost >= 0
    waits = jnp.sum((moves & 15 == WAIT), axis=0, dtype=jnp.int32) + jnp.sum(
        moves >> 4 == WAIT, axis=0, dtype=jnp.int32
    )
    numbers = {
        "status": jnp.where(solvable, jnp.int32(Status.SOLVABLE), jnp.int32(Status.UNSOLVABLE)),
        "certificate": jnp.where(flooded, jnp.int32(Certificate.FLOOD), jnp.int32(Certificate.BOUND)),
        "makespan": makespan,
        "sum_of_costs": cost,
        "wait_required": (wait & solvable).astype(jnp.int32),
        "plan_length": jnp.sum(moves != IDLE, axis=0, dtype=jnp.int32),
        "plan_waits": waits,
        "manhattan": jnp.sum(jnp.abs(boards.starts - boards.goals), axis=(1, 2), dtype=jnp.int32),
    }
    if not numbers.keys() >= set(names):  # what is not asked for is not measured
        numbers |= count_board_features(boards)
    wide = jnp.stack([numbers[name] for name in names]).astype(jnp.int16)
    return wide.astype(jnp.uint8), jnp.all(wide < NARROW), wide


def _copy_numbers(counted: tuple[jax.Array, ...]) -> np.ndarray:
    """Numbers as int16 [C, B], in memory of the host. counted: from `_join_numbers`."""
    narrow, fits, wide = counted
    narrow.copy_to_host_async()
    if not bool(fits):
        return np.asarray(wide)
    # NARROW is the largest byte, so one more is 0, and 0 less one is NONE.
    return np.subtract(np.asarray(narrow) + np.uint8(1), np.int16(1), dtype=np.int16)


def _write_columns(found: dict[str, np.ndarray], begin: int, numbers: dict[str, np.ndarray]) -> None:
    """Writes the columns of a block into the rows from `begin` on.

    Args:
        found: the columns of all boards, written here.
        begin: place of the first board.
        numbers: some of COUNTED, int16 [B] each.
    """
    zero = np.zeros(1, np.int16)
    whole = {name: numbers.get(name, zero) for name in COUNTED}
    columns = blank_labels(whole)
    columns |= join_measured({name: whole[name] for name in MEASURED}, whole["manhattan"], 2, columns)
    for name, values in found.items():
        rows = values[begin : begin + len(numbers[next(iter(numbers))])]
        rows[:] = columns[name][: len(rows)]
