"""Uniform random boards, solvable or not.

Seed, size, agents, holes and index determine a board, so a set can be drawn in pieces, in any order, on any machine.
"""

import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.generator.placements import make_lots, scatter_cells
from lakewright.core_jax.solver.accelerator.sizes import in_blocks_with_room
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import in_blocks, on_gpu
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.support.random_keys import make_streams
from lakewright.core_jax.types import Board

FREE = 2  # after the streams of the generator: 0 and 1, its strata
BLOCK, LARGE = 4096, 1 << 16  # boards drawn at a time, and on a GPU


@stated_settings()
def draw_free(size: int, agents: int, holes: int, seed: int, first: int, count: int) -> Board:
    """Draws the boards first .. first + count - 1 of a set, numpy arrays with leading axis `count`.

    Starts, goals and holes are uniform among all placements on distinct cells.

    Args:
        size: n, the cells on a side of the boards.
        agents: number of agents on a board.
        holes: exact number of holes on a board.
        seed: seed of the set.
        first: the index of the first board.
        count: boards to draw.
    """
    key = make_stream(size, agents, holes, seed)
    index = np.arange(count, dtype=np.uint32) + np.uint32(first)

    def of_block(index: np.ndarray) -> Board:
        drawn = _draw_lots(size, key, index)
        # Sorted by numpy: XLA takes 7 to 25 times as long on a CPU, a third of the time to solve a board.
        return _place_boards(agents, drawn, np.sort(drawn, axis=1), holes)

    def of_large_block(index: np.ndarray) -> Board:
        return draw_there(size, agents, key, index, holes)

    parts = in_blocks_with_room(of_large_block, index, LARGE) if on_gpu() else in_blocks(of_block, index, BLOCK)
    return jax.tree.map(lambda *fields: np.concatenate(fields), *parts)


def make_stream(size: int, agents: int, holes: int, seed: int) -> jax.Array:
    """The key of a set of boards.

    Args:
        size: cells on a side.
        agents, holes: numbers on a board.
        seed: the set's seed.
    """
    return make_streams([(seed, agents, size, holes, FREE)])[0]


@program(static_argnums=(0, 1))
def draw_there(size: int, agents: int, key: jax.Array, index: jax.Array, holes: jax.Array) -> Board:
    """Like `draw_free`, the boards of a set with these numbers, without leaving the device.

    Args:
        size: n, the cells on a side of the boards.
        agents: number of agents on a board.
        key: from `make_stream`.
        index: uint32 [B], numbers of boards.
        holes: int32 [], on each board.
    """

    def draw_lots(place: jax.Array) -> jax.Array:
        return make_lots(jax.random.bits(jax.random.fold_in(key, place), (size * size,)))

    drawn = jax.vmap(draw_lots)(index)
    free, cells = jax.vmap(scatter_cells, (0, 0, None, None))(drawn, jnp.sort(drawn, axis=1), 2 * agents, holes)
    return Board(~free, cells[:, :agents], cells[:, agents:])


@program(static_argnums=0)
def _draw_lots(size: int, key: jax.Array, index: jax.Array) -> jax.Array:
    return jax.vmap(lambda place: make_lots(jax.random.bits(jax.random.fold_in(key, place), (size * size,))))(index)


@program(static_argnums=0)
def _place_boards(agents: int, drawn: jax.Array, order: jax.Array, holes: jax.Array) -> Board:
    """The boards of B permutations of the cells.

    Args:
        agents: number of agents on a board.
        drawn: uint32 [B, n^2], lots.
        order: uint32 [B, n^2], the lots of each board, sorted.
        holes: int32 [], on each board.
    """
    free, cells = jax.vmap(scatter_cells, (0, 0, None, None))(drawn, order, 2 * agents, holes)
    return Board(~free, cells[:, :agents], cells[:, agents:])
