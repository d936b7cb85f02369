"""Distances of single agents to their goals, flooded on bitboards."""

import functools
from typing import TypeVar

import jax
import jax.numpy as jnp

from lakewright.core_jax.lake.bitboards import (
    BOARDS_PER_WORD,
    by_word,
    cell_count,
    cell_index,
    move_offsets,
    one_hots,
    pack_cells,
    read_bit,
    shift_cells,
)
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import Board

NO_PATH = 1 << 14  # the distance of cells without a path to the goal
T = TypeVar("T")


@program
def measure_distances(boards: Board) -> jax.Array:
    """The single distance of every cell to each goal, NO_PATH if unreachable: int16 [B, K, n, n]."""
    count, agents = boards.goals.shape[:2]
    size = boards.holes.shape[-1]
    padded = pad_rows(boards, BOARDS_PER_WORD)
    free = jax.vmap(pack_cells)(by_word(~padded.holes))
    cells = jnp.moveaxis(by_word(cell_index(size, padded.goals)), 2, 1)  # [W, K, 32]
    goals = one_hots(cells, free.shape[1])
    around = jnp.broadcast_to(free[:, None], goals.shape).reshape(-1, free.shape[1])
    bits = (size * size).bit_length()
    digits, reached = flood_distances(size, around, goals.reshape(around.shape), bits)

    def unpack_boards(words: jax.Array) -> jax.Array:
        return read_bit(words.reshape(-1, 1, agents, cell_count(size)), jnp.arange(BOARDS_PER_WORD).reshape(-1, 1, 1))

    distance = functools.reduce(jnp.bitwise_or, [unpack_boards(digits[i]) << i for i in range(bits)])
    distance = jnp.where(unpack_boards(reached) == 1, distance, NO_PATH).astype(jnp.int16)
    return distance.reshape(-1, agents, size, size + 1)[:count, ..., :size]


def flood_distances(size: int, free: jax.Array, goals: jax.Array, bits: int) -> tuple[jax.Array, jax.Array]:
    """The distance of every cell to a goal for P words of single agents, in binary.

    The cells within distance d are L_0 = goals and L_d = (L_{d-1} | its neighbours) & free, so the cells at distance d
    are L_d less L_{d-1}.

    Args:
        size: n, the cells on a side of the boards.
        free: uint32 [P, N], the cells that may be entered.
        goals: uint32 [P, N], one cell a board; goals that are not `free` are dropped.
        bits: binary digits of the distances.

    Returns: the distances, uint32 [bits, P, N], lowest digit first, and the cells with a path, uint32 [P, N].
    """
    # One buffer for all boards, each followed by a row of zeros, so that a move is a shift of the whole buffer.
    count, gap = free.shape[1], size + 1
    spread = jnp.pad(free, ((0, 0), (0, gap))).reshape(-1)

    def read_at(buffer: jax.Array, by: int = 0) -> jax.Array:
        return jax.lax.slice_in_dim(buffer, gap + by, gap + by + spread.shape[0])

    def grow_layer(buffer: jax.Array, into: jax.Array) -> jax.Array:
        near = functools.reduce(jnp.bitwise_or, [read_at(buffer, by) for by in (0, *move_offsets(size)[:4])])
        return jax.lax.dynamic_update_slice(into, near & spread, (gap,))

    def record_distance(digits: jax.Array, cells: jax.Array, distance: jax.Array) -> jax.Array:
        return digits | (cells & -(distance >> jnp.arange(bits, dtype=jnp.uint32) & 1)[:, None])

    def flood_two_layers(carry):
        # `late` holds L_{d-1}. Each buffer is read one layer before it is overwritten, so two serve all layers.
        distance, early, late, digits, _ = carry
        first, before = grow_layer(late, early), read_at(late)  # L_d, L_{d-1}
        digits = record_distance(digits, read_at(first) & ~before, distance)
        second = grow_layer(first, late)  # L_{d+1}
        new = read_at(second) & ~read_at(first)
        digits = record_distance(digits, new, distance + 1)
        return distance + 2, first, second, digits, jnp.any(new != 0)

    none = jnp.zeros(spread.shape[0] + 2 * gap, jnp.uint32)
    begin = jax.lax.dynamic_update_slice(none, jnp.pad(goals, ((0, 0), (0, gap))).reshape(-1) & spread, (gap,))
    digits = jnp.zeros((bits, spread.shape[0]), jnp.uint32)
    carry = (jnp.uint32(1), none, begin, digits, jnp.array(True))
    _, _, reached, digits, _ = jax.lax.while_loop(lambda carry: carry[4], flood_two_layers, carry)
    apart = [field.reshape(*field.shape[:-1], -1, count + gap)[..., :count] for field in (digits, read_at(reached))]
    return apart[0], apart[1]


def find_neighbours(size: int, reached: jax.Array) -> jax.Array:
    """The cells from which one move leads into `reached`: uint32 [..., N]."""
    up, down, left, right = (shift_cells(reached, by, reached.ndim - 1) for by in move_offsets(size)[:4])
    return up | down | left | right


def pad_rows(batch: T, multiple: int) -> T:
    """A batch of arrays, filled up with copies of its last row until its length is a multiple of `multiple`."""

    def pad_field(field: jax.Array) -> jax.Array:
        return jnp.pad(field, ((0, -field.shape[0] % multiple), *[(0, 0)] * (field.ndim - 1)), mode="edge")

    return jax.tree.map(pad_field, batch)
