"""The statistics of a batch of boards: one column for each statistic, one row for each board.

The columns are those by which the literature predicts how hard a board is for a solver: the gap between the optima and
the bounds of single agents, conflicts of single paths and multi-valued decision diagrams (Sharon et al., 2013; Boyarski
et al., 2015), density, distances and the map's narrow places (Kaduri, Boyarski and Stern, 2020; Ren et al., 2021; Ewing
et al., 2022).
"""

import functools
from collections.abc import Collection

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from lakewright.core_jax.lake.bitboards import (
    at_least,
    by_word,
    cell_count,
    cell_index,
    count_sets,
    move_offsets,
    one_hots,
    pack_cells,
    shift_cells,
)
from lakewright.core_jax.lake.label_batches import take_rows
from lakewright.core_jax.solver.accelerator.sizes import in_blocks_with_room
from lakewright.core_jax.statistics.path_features import conflicts_on_shortest_paths
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import in_blocks, on_gpu
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import (
    CERTIFICATE_NAMES,
    DOWN,
    LEFT,
    PAD,
    RIGHT,
    STATUS_NAMES,
    UP,
    WAIT,
    Board,
    Labels,
    Status,
)

BLOCK, LARGE = 1024, 1 << 16  # boards measured at a time, and on a GPU
NONE = -1  # for a number that a board does not have

# Every column: its type and its meaning. A number that does not exist is null in a table.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "status": (pa.string(), "solvable, unsolvable or undecided"),
    "certificate": (pa.string(), "why the labels are certain: bound, flood or search; empty if undecided"),
    "makespan": (pa.int16(), "the optimal makespan, if solvable"),
    "sum_of_costs": (pa.int16(), "the optimal sum of costs, if solvable"),
    "wait_required": (pa.bool_(), "whether every plan of optimal sum of costs waits, if solvable"),
    "plan_length": (pa.int16(), "steps of the plan of optimal sum of costs that is stored with boards"),
    "plan_waits": (pa.int16(), "waits in that plan before final arrivals"),
    "makespan_bound": (pa.int16(), "the largest distance of an agent to its goal, if each has a way"),
    "cost_bound": (pa.int16(), "the sum of these distances"),
    "makespan_gap": (pa.int16(), "makespan - makespan_bound"),
    "cost_gap": (pa.int16(), "sum_of_costs - cost_bound: 0 if some shortest paths do not conflict"),
    "manhattan": (pa.int16(), "the sum of the distances if there were no holes"),
    "vertex_conflicts": (
        pa.int16(),
        "pairs of agents and times in one cell, on first shortest paths (U before D L R)",
    ),
    "target_conflicts": (pa.int16(), "vertex conflicts on the goal of one of the two"),
    "swap_conflicts": (pa.int16(), "pairs of agents and times that exchange cells on these paths"),
    "cardinal_conflicts": (pa.int16(), "vertex conflicts that are on all shortest paths of both agents"),
    "path_overlap": (pa.int16(), "cells on the first shortest paths of two or more agents"),
    "mdd_nodes": (pa.int16(), "cells on any shortest path, summed over the agents: the nodes of their MDDs"),
    "mdd_overlap": (pa.int16(), "cells where two agents can be at one time on shortest paths"),
    "free_cells": (pa.int16(), "cells that are not holes"),
    "density": (pa.float32(), "agents / free cells"),
    "components": (pa.int16(), "connected components of the free cells"),
    "largest_component": (pa.int16(), "cells of the largest of them"),
    "branching": (pa.float32(), "mean number of free neighbours of a free cell"),
    "dead_ends": (pa.int16(), "free cells of one free neighbour"),
    "corridors": (pa.int16(), "free cells of at most two free neighbours"),
    "bottlenecks": (pa.int16(), "free cells that cut their neighbours from each other within the eight cells around"),
}
SCHEMA = pa.schema([pa.field(name, kind, metadata={"about": about}) for name, (kind, about) in COLUMNS.items()])

LABELS = ("status", "certificate", "makespan", "sum_of_costs", "wait_required")
NAMES = {"status": list(STATUS_NAMES), "certificate": list(CERTIFICATE_NAMES)}
# Counted on the device.
MEASURED = (
    *("makespan_bound", "cost_bound", "vertex_conflicts", "target_conflicts", "swap_conflicts", "cardinal_conflicts"),
    *("path_overlap", "mdd_nodes", "mdd_overlap", "free_cells", "links", "components", "largest_component"),
    *("dead_ends", "corridors", "bottlenecks"),
)
CLOCKWISE = ((UP, RIGHT), (RIGHT, DOWN), (DOWN, LEFT), (LEFT, UP))  # with a diagonal neighbour between each two


@stated_settings()
def features(boards: Board, labels: Labels, columns: Collection[str] = tuple(COLUMNS)) -> dict[str, np.ndarray]:
    """The statistics of B boards of one size and number of agents: for each of `columns`, of COLUMNS, an array [B].

    Whole numbers, and wait_required, 0 or 1, are -1 if COLUMNS says so. status and certificate are numbers of `Status`
    and `Certificate`, which `table` names.
    """
    found = _read_labels(labels)
    if not found.keys() >= set(columns):
        # Sorted by distance, because each block walks as far as its longest.
        order = np.argsort(found["makespan"], kind="stable")
        in_order = take_rows(boards, order)
        split, block = (in_blocks_with_room, LARGE) if on_gpu() else (in_blocks, BLOCK)
        numbers = np.concatenate(split(measure_block, in_order, block))[np.argsort(order)]
        ends = np.abs(np.asarray(boards.starts) - np.asarray(boards.goals)).sum(axis=(1, 2))
        measured = dict(zip(MEASURED, np.ascontiguousarray(numbers.T), strict=True))
        found |= join_measured(measured, ends, boards.starts.shape[1], found)
    return {name: found[name] for name in columns}


def join_measured(
    measured: dict[str, np.ndarray], manhattan: np.ndarray, agents: int, labels: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The statistics that are measured on boards, and those computed from these and the labels.

    Args:
        measured: MEASURED, int16 [B] each.
        manhattan: int [B].
        agents: number of agents on a board.
        labels: the columns with labels.
    """
    free = np.maximum(measured["free_cells"], 1)
    return {name: values for name, values in measured.items() if name != "links"} | {
        "makespan_gap": _subtract_bound(labels["makespan"], measured["makespan_bound"]),
        "cost_gap": _subtract_bound(labels["sum_of_costs"], measured["cost_bound"]),
        "manhattan": manhattan,
        "density": (agents / free).astype(np.float32),
        "branching": (2 * measured["links"] / free).astype(np.float32),
    }


def table(statistics: dict[str, np.ndarray]) -> pa.Table:
    """Statistics from `features`, or some of them, as a table: null if missing."""
    columns = [_make_column(name, values) for name, values in statistics.items()]
    return pa.table(columns, schema=pa.schema([SCHEMA.field(name) for name in statistics]))


@program
def measure_block(boards: Board) -> jax.Array:
    """MEASURED of B boards, B a multiple of 32: int16 [B, M]."""
    found = count_board_features(boards)
    return jnp.stack([found[name] for name in MEASURED], axis=1).astype(jnp.int16)


def count_board_features(boards: Board) -> dict[str, jax.Array]:
    """MEASURED of B boards, B a multiple of 32: int32 [B] each."""
    size = boards.holes.shape[-1]
    free = jnp.moveaxis(jax.vmap(pack_cells)(by_word(~boards.holes)), 0, -1)
    starts, goals = _make_cell_sets(size, boards.starts), _make_cell_sets(size, boards.goals)
    return (
        count_terrain(size, free)
        | count_components(~boards.holes)
        | conflicts_on_shortest_paths(size, free, starts, goals)
    )


def _make_cell_sets(size: int, cells: jax.Array) -> jax.Array:
    """int32 [B, K, 2] to sets of one cell each, [K, N, W]."""
    index = jnp.moveaxis(by_word(cell_index(size, cells)), 2, 0)  # [K, W, 32]
    return jnp.moveaxis(one_hots(index, cell_count(size)), 1, 2)


def _read_labels(labels: Labels) -> dict[str, np.ndarray]:
    moves = np.asarray(labels.moves)
    numbers = {name: np.asarray(getattr(labels, name)) for name in LABELS}
    return blank_labels(
        numbers
        | {
            "plan_length": (moves != PAD).any(axis=1).sum(axis=1, dtype=np.int16),
            "plan_waits": (moves == WAIT).sum(axis=(1, 2), dtype=np.int16),
        }
    )


def blank_labels(numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns that tell of labels: LABELS, and the plan's length and waits, NONE if a board has no plan."""
    solvable = numbers["status"] == Status.SOLVABLE

    def blank_unknown(values: np.ndarray) -> np.ndarray:
        return np.where(solvable, values, NONE)

    return {
        **{name: numbers[name] for name in ("status", "certificate", "makespan", "sum_of_costs")},
        **{name: blank_unknown(numbers[name]) for name in ("wait_required", "plan_length", "plan_waits")},
    }


def _subtract_bound(optimum: np.ndarray, bound: np.ndarray) -> np.ndarray:
    return np.where(optimum == NONE, NONE, optimum - bound)


def _make_column(name: str, values: np.ndarray) -> pa.Array:
    kind = SCHEMA.field(name).type
    if name in NAMES:  # Arrow takes ten times as long to make strings of objects
        return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int8)), NAMES[name]).dictionary_decode()
    if pa.types.is_floating(kind):
        return pa.array(values, kind)
    return pa.array(values.astype(kind.to_pandas_dtype()), kind, mask=values == NONE)


def count_terrain(size: int, free: jax.Array) -> dict[str, jax.Array]:
    """Counts of cells of free uint32 [N, W], int32 [32 W] each.

    free_cells; links, pairs of neighbours; dead_ends, of one neighbour; corridors, of two or fewer.
    bottlenecks: cells whose neighbours are not all connected within the eight cells around, but form two or more groups
    (the connectivity number of Yokoi, Toriwaki and Fukumura, 1975); all articulation points are such.
    """
    chex.assert_shape(free, (cell_count(size), None))
    by = move_offsets(size)
    near = [shift_cells(free, step, 0) for step in by[:4]]
    at_corner = [shift_cells(free, by[one] + by[other], 0) for one, other in CLOCKWISE]
    # Clockwise, a group ends at each neighbour that is not connected to the next one.
    ends = [near[one] & ~(corner & near[other]) for (one, other), corner in zip(CLOCKWISE, at_corner, strict=True)]
    one, two, three = at_least(near, 3)
    counts = count_sets(
        {
            "free_cells": free[None],
            "links": jnp.stack([free & near[RIGHT], free & near[DOWN]]),
            "dead_ends": (free & one & ~two)[None],
            "corridors": (free & ~three)[None],
            "bottlenecks": (free & at_least(ends, 2)[1])[None],
        }
    )
    return {name: jnp.sum(count, axis=0) for name, count in counts.items()}


def count_components(free: jax.Array) -> dict[str, jax.Array]:
    """Of free bool [B, n, n], the number of connected components and the cells of the largest_component: int32 [B]."""
    names = _name_components(free)
    hole = jnp.array(jnp.iinfo(names.dtype).max, names.dtype)
    own = jnp.arange(len(names), dtype=names.dtype)[:, None]

    def count(cells: jax.Array) -> jax.Array:
        return jnp.sum(cells, axis=0, dtype=names.dtype)

    def following(carry):
        last, left, largest = carry
        name = jnp.min(jnp.where(names > last, names, hole), axis=0)
        size = count((names == name) & (name < hole))
        return name, left - size, jnp.maximum(largest, size)

    # One component after another, until the rest is not larger than the largest so far.
    whole = names[0] == 0
    size = count((names == 0) & whole)
    begin = jnp.zeros_like(size), count(names < hole) - size, size
    _, _, largest = jax.lax.while_loop(lambda carry: jnp.any(carry[1] > carry[2]), following, begin)
    return {
        "components": count(names == own).astype(jnp.int32),
        "largest_component": largest.astype(jnp.int32),
    }


def _name_components(free: jax.Array) -> jax.Array:
    """For each padded cell the smallest cell of its component, the largest number at holes: uint8 or uint16 [N, B].

    Like `label_components` of `lakewright.core_jax.generator.placements`, but with the boards last, so that their bytes
    are adjacent.
    """
    boards, size, _ = free.shape
    cells, margin = cell_count(size), size + 1
    kind = jnp.uint8 if cells < 255 else jnp.uint16
    hole = jnp.array(jnp.iinfo(kind).max, kind)
    padded = jnp.pad(free, ((0, 0), (0, 0), (0, 1))).reshape(boards, -1).T
    walls = jnp.where(padded, jnp.zeros_like(hole), hole)

    def read(buffer: jax.Array, by: int = 0) -> jax.Array:
        return jax.lax.slice_in_dim(buffer, margin + by, margin + by + cells)

    def written(buffer: jax.Array, names: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(buffer, names, (margin, 0))

    def spread(buffer: jax.Array) -> jax.Array:
        return functools.reduce(jnp.minimum, [read(buffer, by) for by in move_offsets(size)]) | walls

    def twice(carry):
        early, late, _ = carry
        late = written(late, spread(early))
        names = spread(late)
        return written(early, names), late, jnp.any(names != read(early))

    nothing = jnp.full((cells + 2 * margin, boards), hole)
    begin = written(nothing, jnp.arange(cells, dtype=kind)[:, None] | walls)
    return read(jax.lax.while_loop(lambda carry: carry[2], twice, (begin, nothing, jnp.array(True)))[0])
