"""The cheapest certificate: shortest paths of all agents that never meet.

Such paths reach the lower bounds of both objectives, maximum and sum of the single distances, without a wait; so they
prove the optima and that no wait is required. And an agent without any path proves the board unsolvable.

The agents are planned one after another, each along any of its shortest paths that meets none of those before it
(prioritized planning: Erdmann and Lozano-Perez, 1987), for 32 boards to a word.
"""

import functools
from typing import TypeVar

import chex
import flax.struct
import jax
import jax.numpy as jnp

from core_jax.bitboards import BOARDS_PER_WORD, bit, by_word, cell_count, cell_index, offsets, one_hot, pack, pack_cells
from core_jax.floods import single_floods
from core_jax.types import DELTAS, DOWN, LEFT, PAD, RIGHT, UP, WAIT, Board, Certificate, Labels, Status

FAR = 1 << 14  # the distance from where there is no way
# Which of several shortest moves to take: each order is tried.
ORDERS = ((UP, DOWN, LEFT, RIGHT), (DOWN, UP, RIGHT, LEFT), (LEFT, RIGHT, UP, DOWN), (RIGHT, LEFT, DOWN, UP))
WORDS = 4  # planned side by side
T = TypeVar("T")


@flax.struct.dataclass
class Certified:
    """What the certificate says of a board: `proven` bool [] tells if `labels` are certain."""

    proven: jax.Array
    labels: Labels


@jax.jit
def distances(boards: Board) -> jax.Array:
    """The single distance of every cell to each goal, FAR where there is no way: int16 [B, K, n, n]."""
    count, agents = boards.goals.shape[:2]
    size = boards.holes.shape[-1]
    padded = _filled(boards, BOARDS_PER_WORD)
    free = jax.vmap(pack_cells)(by_word(~padded.holes))
    cells = jnp.moveaxis(by_word(cell_index(size, padded.goals)), 2, 1)  # [W, K, 32]
    goals = jax.vmap(jax.vmap(one_hot, (0, None)), (0, None))(cells, free.shape[1])
    around = jnp.broadcast_to(free[:, None], goals.shape).reshape(-1, free.shape[1])
    bits = (size * size).bit_length()
    digits, reached = single_floods(size, around, goals.reshape(around.shape), bits)

    def unpacked(words: jax.Array) -> jax.Array:
        return bit(words.reshape(-1, 1, agents, cell_count(size)), jnp.arange(BOARDS_PER_WORD).reshape(-1, 1, 1))

    distance = functools.reduce(jnp.bitwise_or, [unpacked(digits[i]) << i for i in range(bits)])
    distance = jnp.where(unpacked(reached) == 1, distance, FAR).astype(jnp.int16)
    return distance.reshape(-1, agents, size, size + 1)[:count, ..., :size]


@functools.partial(jax.jit, static_argnums=0)
def certify(horizon: int, boards: Board, distance: jax.Array) -> Certified:
    """Tries to find shortest paths that never meet on B boards of K agents.

    Args: horizon, at least the largest finite distance; distance int16 [B, K, n, n] as from `distances`.
    """
    count, agents = boards.starts.shape[:2]
    chex.assert_shape(distance, (count, agents, *boards.holes.shape[1:]))
    away = distance[
        jnp.arange(count)[:, None], jnp.arange(agents), boards.starts[..., 0], boards.starts[..., 1]
    ].astype(jnp.int32)
    solvable = jnp.all(away < FAR, axis=1)
    filled, distance = _filled((boards, distance), BOARDS_PER_WORD * WORDS)
    groups = jax.tree.map(
        lambda field: field.reshape(-1, WORDS, BOARDS_PER_WORD, *field.shape[1:]),
        (filled.starts, filled.goals, distance),
    )
    found, moves = jax.lax.map(lambda group: _apart(horizon, *group), groups)
    found, moves = (field.reshape(-1, *field.shape[3:])[:count] for field in (found, moves))
    proven = solvable & found
    return Certified(
        proven=proven | ~solvable,
        labels=Labels(
            status=jnp.where(solvable, Status.SOLVABLE, Status.UNSOLVABLE),
            certificate=jnp.full(count, Certificate.BOUND, jnp.int32),
            makespan=jnp.where(solvable, jnp.max(away, axis=1), -1),
            sum_of_costs=jnp.where(solvable, jnp.sum(away, axis=1), -1),
            wait_required=jnp.zeros(count, bool),
            moves=jnp.where(proven[:, None, None], moves, PAD),
        ),
    )


def _apart(horizon: int, starts: jax.Array, goals: jax.Array, distance: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Shortest paths that never meet: whether they were found, bool [W, 32], and moves int8 [W, 32, K, horizon].

    Args: starts, goals int32 [W, 32, K, 2]; distance int16 [W, 32, K, n, n].
    """
    agents, size = distance.shape[2], distance.shape[-1]
    closer = _closer(distance)
    begin, end = (_flat(size, _one_hot(size, cells)) for cells in (starts, goals))
    found, moves = [], []
    for agents_in_order in dict.fromkeys([tuple(range(agents)), tuple(reversed(range(agents)))]):
        occupied = jnp.zeros((horizon + 1, len(ORDERS), begin.shape[-1] + 2 * (size + 1)), jnp.uint32)
        all_found, by_agent = ~jnp.uint32(0), {}
        for agent in agents_in_order:
            planned, taken, occupied = _plan(size, begin[agent], end[agent], closer[agent], occupied)
            all_found, by_agent[agent] = all_found & planned, taken
        found.append(all_found)
        moves.append(jnp.stack([by_agent[agent] for agent in range(agents)]))
    return _first(jnp.concatenate(found), jnp.concatenate(moves, axis=-2))


def _plan(
    size: int, begin: jax.Array, end: jax.Array, closer: jax.Array, occupied: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A shortest path of one agent that meets nobody, for each of V = len(ORDERS) ways to choose among several.

    Args: begin, end uint32 [L], one cell each; closer uint32 [4, L], where each move is a step nearer; occupied uint32
    [T + 1, V, L + 2 (n + 1)], the cells of others by time. L holds W flat boards. Returns: who has such a path, uint32
    [V, W]; who moves where, uint32 [T, 4, V, W]; occupied together with the path.

    Also left out is a move into a cell that someone leaves while someone comes into one's own: for two agents just
    the swap, for more sometimes too strict.
    """
    gap, length, moves = size + 1, begin.shape[0], offsets(size)[:4]

    def read(buffer: jax.Array, by: int = 0) -> jax.Array:
        return jax.lax.slice_in_dim(buffer, gap + by, gap + by + length, axis=-1)

    def spaced(cells: jax.Array) -> jax.Array:
        zeros = jnp.zeros((*cells.shape[:-1], length + 2 * gap), jnp.uint32)
        return jax.lax.dynamic_update_slice(zeros, cells, (*[0] * (cells.ndim - 1), gap))

    def choices(good: jax.Array, now: jax.Array, soon: jax.Array) -> list[jax.Array]:
        """From where each move leads to `good`, the others being `now`, and `soon` a step later."""
        swaps = (read(now, by) & read(soon) for by in moves)
        return [closer[d] & read(good, by) & ~swap for d, (by, swap) in enumerate(zip(moves, swaps, strict=True))]

    def backward(good, others):
        now, soon = others
        good = spaced((end & read(good) | functools.reduce(jnp.bitwise_or, choices(good, now, soon))) & ~read(now))
        return good, good

    def forward(at, others):
        now, soon, good = others
        open_moves = [read(at) & choice for choice in choices(good, now, soon)]
        taken = [
            move & ~functools.reduce(jnp.bitwise_or, [other & _preferred(e, d) for e, other in enumerate(open_moves)])
            for d, move in enumerate(open_moves)
        ]
        arrived = [read(spaced(move), -by) for move, by in zip(taken, moves, strict=True)]
        at = spaced(functools.reduce(jnp.bitwise_or, arrived, read(at) & end & read(good)))
        return at, (at, _any_cell(size, jnp.stack(taken)))

    now, soon = occupied[:-1], occupied[1:]
    home = spaced(jnp.broadcast_to(end, (len(ORDERS), length)) & ~read(occupied[-1]))
    _, good = jax.lax.scan(backward, home, (now, soon), reverse=True)
    first = spaced(begin & read(good[0]))
    good_soon = jnp.concatenate([good[1:], home[None]])
    _, (path, taken) = jax.lax.scan(forward, first, (now, soon, good_soon))
    return _any_cell(size, read(first)), taken, occupied | jnp.concatenate([first[None], path])


def _preferred(move: int, other: int) -> jax.Array:
    """All ones for the ORDERS in which `move` stands before `other`: uint32 [V, 1]."""
    return jnp.array([[0xFFFFFFFF if order.index(move) < order.index(other) else 0] for order in ORDERS], jnp.uint32)


def _first(found: jax.Array, moves: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of several attempts the first found: uint32 [V, W] and [K, T, 4, V, W] to bool [W, 32] and int8 [W, 32, K, T]."""
    chosen, done = jnp.zeros(moves.shape[:3] + found.shape[1:], jnp.uint32), jnp.zeros_like(found[0])
    for attempt in range(found.shape[0]):
        chosen = chosen | (moves[..., attempt, :] & found[attempt] & ~done)
        done = done | found[attempt]
    lanes = jnp.arange(BOARDS_PER_WORD)
    by_board = bit(jnp.moveaxis(chosen, 3, 0)[:, None], lanes.reshape(-1, 1, 1, 1))  # [W, 32, K, T, 4]
    return bit(done[:, None], lanes) == 1, (by_board @ jnp.arange(1, 5, dtype=jnp.uint32)).astype(jnp.int8) + jnp.int8(
        PAD
    )


def _closer(distance: jax.Array) -> jax.Array:
    """Where each move is a step nearer to the goal: int16 [W, 32, K, n, n] to uint32 [K, 4, L]."""
    size = distance.shape[-1]
    around = jnp.pad(distance, ((0, 0), (0, 0), (0, 0), (1, 1), (1, 1)), constant_values=FAR)
    nearer = [
        around[..., 1 + row : 1 + row + size, 1 + column : 1 + column + size] == distance - 1
        for row, column in DELTAS[:WAIT]
    ]
    packed = jax.vmap(pack)(jnp.stack(nearer, axis=3))
    return _flat(size, jnp.pad(packed, ((0, 0), (0, 0), (0, 0), (0, 1), (0, 1))).reshape(*packed.shape[:3], -1))


def _one_hot(size: int, cells: jax.Array) -> jax.Array:
    """int32 [W, 32, K, 2] to bitboards uint32 [W, K, (n + 1)**2]."""
    index = jnp.moveaxis(cell_index(size, cells), 2, 1)
    return jax.vmap(jax.vmap(one_hot, (0, None)), (0, None))(index, (size + 1) ** 2)


def _flat(size: int, boards: jax.Array) -> jax.Array:
    """Bitboards with a row of zeros, uint32 [W, ..., (n + 1)**2], one behind the other: uint32 [..., L]."""
    moved = jnp.moveaxis(boards, 0, -2)
    return moved.reshape(*moved.shape[:-2], -1)


def _any_cell(size: int, flat: jax.Array) -> jax.Array:
    """Whether any cell of a board is set: uint32 [..., L] to [..., W]."""
    boards = flat.reshape(*flat.shape[:-1], -1, (size + 1) ** 2)
    return jax.lax.reduce(boards, jnp.uint32(0), jax.lax.bitwise_or, (boards.ndim - 1,))


def _filled(boards: T, multiple: int) -> T:
    """A batch filled up to a multiple with its last board."""

    def fill(field: jax.Array) -> jax.Array:
        return jnp.pad(field, ((0, -field.shape[0] % multiple), *[(0, 0)] * (field.ndim - 1)), mode="edge")

    return jax.tree.map(fill, boards)
