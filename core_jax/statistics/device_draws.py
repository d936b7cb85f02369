"""Statistics of free draws for two agents, made without leaving the device: drawn, labelled, measured, then copied."""

from collections.abc import Collection

import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.generator.uniform_boards import draw_there, make_stream
from lakewright.core_jax.solver.accelerator.device_solver import label_cells
from lakewright.core_jax.solver.accelerator.packing import unload_boards
from lakewright.core_jax.solver.accelerator.shortest_paths import IDLE
from lakewright.core_jax.solver.accelerator.sizes import Sizes, choose_sizes, memory_per_thread
from lakewright.core_jax.statistics.board_features import (
    COLUMNS,
    LABELS,
    MEASURED,
    join_measured,
    measure_block,
    name_labels,
)
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import on_all_cores
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import WAIT, Board, Certificate, Status

COUNTED = (*LABELS, "plan_length", "plan_waits", "manhattan", *MEASURED)
MEASURED_BYTES = 1 << 12  # of memory for each board that is measured


@stated_settings()
def measure_draws(
    size: int, holes: int, seed: int, first: int, count: int, columns: Collection[str] = tuple(COLUMNS)
) -> dict[str, np.ndarray]:
    """As `features` of the boards of `draw_free` for two agents and the labels of `solve`; only numbers are copied.

    Args:
        size: n, the cells on a side of the boards.
        holes: on a board.
        seed: seed of the set.
        first: the index of the first board.
        count: boards to draw.
        columns: the statistics to return.
    """
    key = make_stream(size, 2, holes, seed)
    memory = memory_per_thread()
    sizes = choose_sizes(size, count, memory)
    while sizes.block > 1 << 10 and sizes.block * MEASURED_BYTES > memory:
        sizes = choose_sizes(size, sizes.block - 1, memory)

    def measure_from(begin: int) -> np.ndarray:
        index = np.arange(begin, begin + sizes.block, dtype=np.uint32) + np.uint32(first)
        return np.asarray(_measure_boards(sizes, draw_there(size, 2, key, index, np.int32(holes))))

    begins = range(0, count, sizes.block)
    parts = [*on_all_cores(measure_from, begins[:1]), *on_all_cores(measure_from, begins[1:])]
    numbers = dict(zip(COUNTED, np.concatenate(parts, axis=1)[:, :count], strict=True))
    found = name_labels(numbers)
    found |= join_measured({name: numbers[name] for name in MEASURED}, numbers["manhattan"], 2, found)
    return {name: found[name] for name in columns}


def _measure_boards(sizes: Sizes, boards: Board) -> jax.Array:
    size = boards.holes.shape[-1]
    free, cells = unload_boards(size, boards)
    labels = label_cells(size, sizes, free, cells)
    label = (labels.makespan, labels.cost, labels.wait, labels.flooded, labels.moves)
    return _join_numbers(label, jnp.sum(jnp.abs(boards.starts - boards.goals), axis=(1, 2)), measure_block(boards))


@program
def _join_numbers(label: tuple[jax.Array, ...], manhattan: jax.Array, measured: jax.Array) -> jax.Array:
    """COUNTED of B boards, int16 [C, B].

    Args: label, makespans, costs, waits, whether flooded, and moves; manhattan, int32 [B]; measured, int16 [B, M].
    """
    makespan, cost, wait, flooded, moves = label
    solvable = cost >= 0
    waits = jnp.sum((moves & 15 == WAIT), axis=0, dtype=jnp.int32) + jnp.sum(
        moves >> 4 == WAIT, axis=0, dtype=jnp.int32
    )
    numbers = (
        jnp.where(solvable, jnp.int32(Status.SOLVABLE), jnp.int32(Status.UNSOLVABLE)),
        jnp.where(flooded, jnp.int32(Certificate.FLOOD), jnp.int32(Certificate.BOUND)),
        makespan,
        cost,
        (wait & solvable).astype(jnp.int32),
        jnp.sum(moves != IDLE, axis=0, dtype=jnp.int32),
        waits,
        manhattan.astype(jnp.int32),
    )
    return jnp.concatenate([jnp.stack(numbers).astype(jnp.int16), measured.T])
