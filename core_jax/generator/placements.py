"""Whole boards for any number of agents: holes drawn uniformly, starts and goals inside the components they leave."""

import math

import jax
import jax.numpy as jnp

from lakewright.core_jax.types import Board


def draw_board(size: int, agents: int, key: jax.Array, holes: jax.Array | int) -> tuple[Board, jax.Array]:
    """Draws a board on which each agent alone can reach its goal; also returns whether there is any, bool [].

    The holes are uniform among all cells; given the holes, starts and goals are uniform among all ways to put them on
    distinct cells with each start connected to its goal. If that is impossible, all of them are cell (0, 0).

    Args:
        size: n, the cells on a side of the board.
        agents: number of agents on the board.
        key: a random key, which is consumed.
        holes: exact number of holes.
    """
    hole_key, agent_key = jax.random.split(key)
    drawn = make_lots(jax.random.bits(hole_key, (size * size,)))
    # Holes are the cells of the smallest lots.
    free = (drawn >= jnp.sort(drawn)[holes]).reshape(size, size)
    starts, goals, fits = place_agents(agents, free, agent_key)
    return Board(~free, starts, goals), fits


def place_agents(agents: int, free: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Starts and goals int32 [K, 2], uniform among all placements on free bool [n, n]; and whether there is any, bool.

    A placement has distinct cells, and each start is connected to its goal. A connected pair is drawn for each agent,
    and all pairs are drawn again until no two share a cell: so all placements are equally likely. The key is consumed.
    """
    # A start has as many lots as cells that it may go to; which of its lots is drawn decides the goal.
    labels, number = label_components(free), jnp.arange(free.size).reshape(free.shape)
    members = jnp.sum(labels.reshape(-1) == labels[..., None], axis=-1) * free
    others = jnp.maximum(members - 1, 0)
    # An agent needs any two cells of a component.
    fits = jnp.sum(jnp.where(labels == number, members // 2, 0)) >= agents

    def pair(bits):
        start, nth = _pick_cell(others, scale_below(bits, jnp.sum(others)))
        goal, _ = _pick_cell(((labels == labels[*start]) & (number != number[*start])).astype(jnp.int32), nth)
        return jnp.stack([start, goal])

    def again(carry):
        tries, _, _ = carry
        cells = jax.vmap(pair, out_axes=1)(jax.random.bits(jax.random.fold_in(key, tries), (agents,)))
        numbers = (cells[..., 0] * free.shape[0] + cells[..., 1]).reshape(-1)
        return tries + 1, cells, jnp.sum(numbers[:, None] == numbers) > numbers.size

    first = (jnp.uint32(0), jnp.zeros((2, agents, 2), jnp.int32), fits)
    starts, goals = jax.lax.while_loop(lambda carry: carry[2], again, first)[1]
    return starts, goals, fits


def make_lots(bits: jax.Array) -> jax.Array:
    """Random uint32 bits [N] to numbers of which no two are equal, their place in the lowest bits: `lot_place`.

    Sorting them is a uniform permutation, except for a tie of the upper bits in about one of ten thousand boards.
    """
    count = bits.shape[0]
    return bits & ~jnp.uint32(_place_mask(count)) | jnp.arange(count, dtype=jnp.uint32)


def scatter_cells(
    drawn: jax.Array, order: jax.Array, cells: int, holes: jax.Array | int
) -> tuple[jax.Array, jax.Array]:
    """Draws a map with distinct free cells and with holes, uniform among all ways to put them.

    Returns: free bool [n, n], cells int32 [cells, 2].

    Args:
        drawn: uint32 [n^2], from `make_lots`.
        order: uint32 [n^2], the same, sorted.
        cells: how many to place.
        holes: exact number of holes.
    """
    size = math.isqrt(drawn.shape[0])
    places = lot_place(order[:cells], size * size)
    free = (drawn <= order[cells - 1]) | (drawn > order[cells - 1 + holes])
    return free.reshape(size, size), jnp.stack([places // size, places % size], axis=-1)


def lot_place(lot: jax.Array, count: int) -> jax.Array:
    """The place, int32, of one of `count` lots."""
    return (lot & _place_mask(count)).astype(jnp.int32)


def _place_mask(count: int) -> int:
    return (1 << (count - 1).bit_length()) - 1


def label_components(free: jax.Array) -> jax.Array:
    """The components of free bool [n, n]: for each cell the smallest row-by-row number of its component; n^2 at holes.

    Returns: int32 [n, n].
    """
    count = free.size

    def spread(carry):
        label, _ = carry
        around = jnp.pad(label, 1, constant_values=count)
        vertical = jnp.minimum(around[:-2, 1:-1], around[2:, 1:-1])
        horizontal = jnp.minimum(around[1:-1, :-2], around[1:-1, 2:])
        smaller = jnp.where(free, jnp.minimum(jnp.minimum(vertical, horizontal), label), count)
        return smaller, jnp.any(smaller != label)

    # Each round every free cell takes the smallest label around it, until none changes.
    own = jnp.where(free, jnp.arange(count).reshape(free.shape), count)
    return jax.lax.while_loop(lambda carry: carry[1], spread, (own, jnp.array(True)))[0]


def scale_below(bits: jax.Array, limit: jax.Array) -> jax.Array:
    """Random uint32 bits to a number below `limit`, at most 2^16: int32, each as likely up to one part in 2^16."""
    bits, limit = bits.astype(jnp.uint32), limit.astype(jnp.uint32)
    high, low = bits >> 16, bits & 0xFFFF
    return ((high * limit + (low * limit >> 16)) >> 16).astype(jnp.int32)


def pick_place(weights: jax.Array, ticket: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The place that owns number `ticket`, if place i owns the next `weights[i]` numbers, and its rank among them."""
    up_to = jnp.cumsum(weights)
    place = jnp.argmax(up_to > ticket)
    return place, ticket - (up_to[place] - weights[place])


def _pick_cell(weights: jax.Array, ticket: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`pick_place` among cells, int [n, n]: the cell int32 [2] by its row, then its column."""
    row, left = pick_place(jnp.sum(weights, axis=1), ticket)
    column, left = pick_place(weights[row], left)
    return jnp.stack([row, column]).astype(jnp.int32), left
