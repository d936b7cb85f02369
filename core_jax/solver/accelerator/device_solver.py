"""Labels of boards for two agents by the layout for accelerators, on any platform.

    1. prepare   distances of both agents, and the moves that lead nearer.
    2. certify   shortest paths that never meet: these boards are done.
    3. makespans floods of all joint states of the boards left, by rising distance, in groups.
    4. costs     floods of sums of costs of those with a plan, by rising bound, in groups; the plans from their layers.
A group's flood ends when few of its boards are open; these are flooded again, together. What each board gets does not
depend on its group.
"""

import dataclasses
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake.board_arrays import check_boards
from lakewright.core_jax.lake.label_batches import round_horizon
from lakewright.core_jax.solver.accelerator.cell_sets import CellSet
from lakewright.core_jax.solver.accelerator.makespan_floods import UNKNOWN, flood_for_makespans
from lakewright.core_jax.solver.accelerator.packing import (
    COST_BITS,
    HEAD,
    PackedLabels,
    make_empty_labels,
    pack_labels,
    pack_rest,
    unload_boards,
    write_labels,
)
from lakewright.core_jax.solver.accelerator.plan_walks import flood_for_costs
from lakewright.core_jax.solver.accelerator.row_groups import (
    flood_unknown,
    order_flagged,
    order_unknown,
    sort_rows,
    split_rows,
)
from lakewright.core_jax.solver.accelerator.shortest_paths import IDLE, find_disjoint_paths, measure_paths
from lakewright.core_jax.solver.accelerator.sizes import (
    SMALLEST,
    SPARE,
    Sizes,
    choose_sizes,
    first_depth,
    make_with_room,
    memory_per_thread,
)
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import on_all_cores
from lakewright.core_jax.support.profiling import in_phase
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import Board, Labels

DEPTH_FACTOR = 4  # how many times as deep the next flood of sums of costs looks


@dataclasses.dataclass(frozen=True)
class DeviceLabels:
    """Labels of B boards on a device.

    makespan, cost: int32 [B], -1 if unsolvable. wait: bool [B]. flooded: bool [B], whether a flood decided the board.
    moves: uint8 [T, B], a byte for both agents, see NO_MOVE. furthest: the largest distance of a cell to a goal.
    """

    makespan: jax.Array
    cost: jax.Array
    wait: jax.Array
    flooded: jax.Array
    moves: jax.Array
    furthest: int


@stated_settings()
def solve_on_device(boards: Board, memory: int | None = None) -> Labels:
    """Labels a batch of boards for two agents as `solve` does, plan by plan, by the layout for accelerators.

    Runs on every platform, on all devices of this process, and on the same boards gives the same labels everywhere.
    Raises InputError on boards of another number of agents, on wrong arrays, see `check_boards`, or if the memory does
    not hold the smallest block.

    Args:
        boards: with leading axis B, any B >= 1, of one size.
        memory: bytes that each thread may take on its device; by default a share of the device's own.

    Returns: `Labels` of numpy arrays with leading axis B.
    """
    boards = check_boards(boards)
    count, agents, size = len(boards.starts), boards.starts.shape[1], boards.holes.shape[-1]
    if agents != 2:
        raise InputError(f"agents is {agents}: the solver for accelerators labels boards of two agents; call solve")
    sizes = choose_sizes(size, count, memory_per_thread() if memory is None else memory)
    begins = range(0, count, sizes.block)

    def solve_from(begin: int) -> list[PackedLabels]:
        return make_with_room(partial(_solve_rows, boards), sizes, begin, count)

    kind = (solve_on_device.__qualname__, size, sizes)
    parts = on_all_cores(solve_from, begins, kind)
    labels = make_empty_labels(count, max(part.horizon for some in parts for part in some))
    for begin, some in zip(begins, parts, strict=True):
        for part in some:
            write_labels(labels, begin, part)
            begin += len(part.words)
    return labels


def _solve_rows(boards: Board, sizes: Sizes, begin: int) -> PackedLabels:
    rows = jax.tree.map(lambda field: field[begin : begin + sizes.block], boards)
    return solve_block(sizes, fill_up(rows, sizes.block))


def fill_up(boards: Board, count: int) -> Board:
    """Boards of numpy arrays, filled up to a number of boards with copies of the last."""
    short = count - len(boards.holes)
    if not short:
        return boards
    return jax.tree.map(lambda field: np.concatenate([field, np.repeat(field[-1:], short, axis=0)]), boards)


def solve_block(sizes: Sizes, boards: Board) -> PackedLabels:
    """Labels `sizes.block` boards on the default device."""
    size = boards.holes.shape[-1]
    chex.assert_shape(boards.starts, (sizes.block, 2, 2))
    free, cells = unload_boards(size, boards)
    return copy_back(sizes, label_cells(size, sizes, free, cells))


def label_cells(
    size: int, sizes: Sizes, free: CellSet, cells: jax.Array, wanted: jax.Array | None = None
) -> DeviceLabels:
    """The labels of boards on the default device.

    Args:
        size: n, the cells on a side of the boards.
        sizes: the boards'.
        free: V words uint32 [B].
        cells: int32 [4, B], both starts, then both goals.
        wanted: bool [B], or None. Boards that are wanted get labels from floods alone, others no labels.
    """
    paths = in_phase("distances", measure_paths, size, free, cells)
    if wanted is None:
        furthest = int(paths.furthest)
        found, moves = in_phase("certificates", find_disjoint_paths, size, round_horizon(furthest), cells, paths)
    else:
        furthest, found = 0, ~wanted
        moves = jnp.full((round_horizon(0), cells.shape[1]), IDLE, jnp.uint8)
    makespan, cost, is_open = _begin_labels(paths.distance, found)
    unknown = (makespan, paths.distance)
    makespan = in_phase("floods of makespans", _find_makespans, size, sizes, free, cells, unknown)
    is_live = is_open & (makespan >= 0)
    known = (makespan, jnp.where(is_open & ~is_live, jnp.int32(-1), cost), is_live, paths.distance)
    cost, wait, moves = in_phase("floods of sums of costs", _find_costs, size, sizes, free, cells, known, moves)
    return DeviceLabels(makespan, cost, wait, is_open, moves, furthest)


def _find_makespans(
    size: int, sizes: Sizes, free: CellSet, cells: jax.Array, known: tuple[jax.Array, jax.Array]
) -> jax.Array:
    """The makespans of all boards, int32 [B]; -1 if unsolvable."""
    makespan, distance = known
    flood = partial(flood_for_makespans, size, free, cells)
    return flood_unknown(makespan, _bound_makespans(distance), sizes, flood)


def _find_costs(
    size: int,
    sizes: Sizes,
    free: CellSet,
    cells: jax.Array,
    known: tuple[jax.Array, jax.Array, jax.Array, jax.Array],
    moves: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Sums of costs int32 [B], forced waits bool [B] and moves uint8 [T, B] of all boards.

    Args:
        size: n, the cells on a side of the boards.
        sizes: sizes of blocks and groups.
        free, cells: the boards.
        known: makespans, costs of boards that are not live, which boards are live, and the distances.
        moves: moves of boards that are not live.
    """
    makespan, cost, is_live, distance = known
    wait = jnp.zeros_like(is_live)
    order, count = _order_by_bound(is_live, makespan, distance)
    depth, group, spare = first_depth(size), sizes.flood, sizes.flood // SPARE
    while (left := int(count)) > 0:
        if len(moves) < depth:
            moves = jnp.pad(moves, ((0, depth - len(moves)), (0, 0)), constant_values=IDLE)
        for rows, into in split_rows(order, left, group):
            found = flood_for_costs(size, depth, free, cells, rows, jnp.int32(spare))
            cost, wait, moves = _put_costs((cost, wait, moves), into, found)
        order, count = order_unknown(cost)
        # A deeper flood saves more layers, so it takes fewer boards, and no more memory than the first.
        depth, group, spare = DEPTH_FACTOR * depth, max(min(sizes.tail, group // DEPTH_FACTOR), SMALLEST), 0
    return cost, wait, moves


def copy_back(sizes: Sizes, labels: DeviceLabels) -> PackedLabels:
    """Labels in memory of the host."""
    words, head, longer, dearest = pack_labels(labels.makespan, labels.cost, labels.wait, labels.flooded, labels.moves)
    words.copy_to_host_async()
    head.copy_to_host_async()
    order, count = order_flagged(longer)
    furthest, dearest = labels.furthest, int(dearest)
    if (most := max(2 * furthest, dearest)) >> COST_BITS:
        raise InputError(f"costs of up to {most} do not fit into {COST_BITS} bits; set JAX_PLATFORMS=cpu")
    horizon, long = round_horizon(max(furthest, dearest)), int(count)
    # Few plans are longer, so they are copied in small groups, and only their numbers of all boards'.
    groups = [(pack_rest(horizon, labels.moves, rows), rows) for rows, _ in split_rows(order, long, sizes.tail)]
    for field in jax.tree.leaves(groups):
        field.copy_to_host_async()
    rest = [np.zeros((0, 2, (horizon - HEAD) // 2), np.uint8), *(np.asarray(some) for some, _ in groups)]
    numbers = [np.zeros(0, np.int32), *(np.asarray(rows) for _, rows in groups)]
    longer_rows, further = np.concatenate(numbers)[:long], np.concatenate(rest)[:long]
    return PackedLabels(np.asarray(words), np.asarray(head), longer_rows, further, horizon)


@program
def _begin_labels(distance: jax.Array, found: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Makespans and costs by the distances, int32 [B], -1 without paths; and which boards these do not decide."""
    connected = jnp.all(distance >= 0, axis=0)
    makespan = jnp.where(connected, jnp.max(distance, axis=0), jnp.int32(-1))
    cost = jnp.where(connected, jnp.sum(distance, axis=0, dtype=jnp.int32), jnp.int32(-1))
    is_open = connected & ~found
    return jnp.where(is_open, jnp.int32(UNKNOWN), makespan), jnp.where(is_open, jnp.int32(UNKNOWN), cost), is_open


@program
def _bound_makespans(distance: jax.Array) -> jax.Array:
    """Similar numbers, int32 [B], for boards whose floods of makespans end at about the same layer."""
    return jnp.max(distance, axis=0) * 1024 + jnp.min(distance, axis=0)


@program
def _order_by_bound(is_live: jax.Array, makespan: jax.Array, distance: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The live boards first, by a rising lower bound of their cost: int32 [B]; and how many they are."""
    bound = jnp.maximum(jnp.sum(distance, axis=0, dtype=jnp.int32), makespan + jnp.min(distance, axis=0))
    return sort_rows(is_live, bound)


@program
def _put_costs(labels: tuple[jax.Array, ...], into: jax.Array, found: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """Writes costs, waits and moves of some boards into the arrays of all boards; int32 [G] places."""
    (cost, wait, moves), (more_cost, more_wait, more_moves) = labels, found
    rows = lax.iota(jnp.int32, more_moves.shape[0])[:, None]
    return (
        cost.at[into].set(more_cost, mode="drop", unique_indices=True),
        wait.at[into].set(more_wait, mode="drop", unique_indices=True),
        moves.at[rows, into[None]].set(more_moves, mode="drop", unique_indices=True),
    )
