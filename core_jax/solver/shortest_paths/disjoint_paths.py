"""The cheapest certificate: shortest paths of all agents that never meet.

Such paths reach the lower bounds of both objectives, maximum and sum of the single distances, without a wait; so they
prove the optima and that no wait is required. And an agent without any path proves the board unsolvable.

The agents are planned one after another, each along any of its shortest paths that meets none of those before it
(prioritized planning: Erdmann and Lozano-Perez, 1987), for 32 boards to a word.
"""

import functools
import itertools
from typing import TypeVar

import chex
import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake import (
    BOARDS_PER_WORD,
    any_cell,
    bit,
    by_word,
    cell_count,
    cell_index,
    offsets,
    one_hots,
    pack,
    pack_cells,
    read_spaced,
    spaced,
)
from lakewright.core_jax.solver.two_agents import single_floods
from lakewright.core_jax.support import program
from lakewright.core_jax.types import DELTAS, DOWN, LEFT, PAD, RIGHT, UP, WAIT, Board, Certificate, Labels, Status

NO_PATH = 1 << 14  # the distance of cells without a path to the goal
# Which of several shortest moves to take: each order is tried.
ORDERS = ((UP, DOWN, LEFT, RIGHT), (RIGHT, LEFT, DOWN, UP))  # further ones certify almost no more boards
WORDS = 4  # planned side by side
T = TypeVar("T")


@flax.struct.dataclass
class Certified:
    """What the certificate says of a board: `proven` bool [] says whether `labels` are certain."""

    proven: jax.Array
    labels: Labels


@program
def distances(boards: Board) -> jax.Array:
    """The single distance of every cell to each goal, NO_PATH where there is no path: int16 [B, K, n, n]."""
    count, agents = boards.goals.shape[:2]
    size = boards.holes.shape[-1]
    padded = _filled(boards, BOARDS_PER_WORD)
    free = jax.vmap(pack_cells)(by_word(~padded.holes))
    cells = jnp.moveaxis(by_word(cell_index(size, padded.goals)), 2, 1)  # [W, K, 32]
    goals = one_hots(cells, free.shape[1])
    around = jnp.broadcast_to(free[:, None], goals.shape).reshape(-1, free.shape[1])
    bits = (size * size).bit_length()
    digits, reached = single_floods(size, around, goals.reshape(around.shape), bits)

    def unpacked(words: jax.Array) -> jax.Array:
        return bit(words.reshape(-1, 1, agents, cell_count(size)), jnp.arange(BOARDS_PER_WORD).reshape(-1, 1, 1))

    distance = functools.reduce(jnp.bitwise_or, [unpacked(digits[i]) << i for i in range(bits)])
    distance = jnp.where(unpacked(reached) == 1, distance, NO_PATH).astype(jnp.int16)
    return distance.reshape(-1, agents, size, size + 1)[:count, ..., :size]


@program(static_argnums=0)
def certify(horizon: int, boards: Board, distance: jax.Array) -> Certified:
    """Tries to find shortest paths that never meet on B boards of K agents.

    Args: horizon, at least the largest finite distance; distance int16 [B, K, n, n] as from `distances`.
    """
    count, agents = boards.starts.shape[:2]
    chex.assert_shape(distance, (count, agents, *boards.holes.shape[1:]))
    away = distance[
        jnp.arange(count)[:, None], jnp.arange(agents), boards.starts[..., 0], boards.starts[..., 1]
    ].astype(jnp.int32)
    solvable = jnp.all(away < NO_PATH, axis=1)
    # Boards of similar distances side by side, as each group walks as far as its longest path.
    furthest = jnp.where(solvable, jnp.max(away, axis=1), 0)
    order = jnp.argsort(furthest)
    in_order = jax.tree.map(lambda field: field[order], (boards.starts, boards.goals, distance, furthest))
    groups = jax.tree.map(
        lambda field: field.reshape(-1, WORDS, BOARDS_PER_WORD, *field.shape[1:]),
        _filled(in_order, BOARDS_PER_WORD * WORDS),
    )
    found, moves = jax.lax.map(lambda group: _apart(horizon, *group), groups)
    back = jnp.argsort(order)
    found, moves = (field.reshape(-1, *field.shape[3:])[back] for field in (found, moves))
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


def _apart(
    horizon: int, starts: jax.Array, goals: jax.Array, distance: jax.Array, away: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Shortest paths that never meet: whether they were found, bool [W, 32], and moves int8 [W, 32, K, horizon].

    Args: starts, goals int32 [W, 32, K, 2]; distance int16 [W, 32, K, n, n]; away int32 [W, 32], the largest distance
    on a board, at most `horizon`.
    """
    agents, size = distance.shape[2], distance.shape[-1]
    closer, steps = _closer(distance), jnp.max(away)
    begin, end = _one_hot(size, starts), _one_hot(size, goals)
    found, paths = [], []
    for agents_in_order in dict.fromkeys([tuple(range(agents)), tuple(reversed(range(agents)))]):
        occupied = jnp.zeros((horizon + 1, *spaced(size, begin[0]).shape), jnp.uint32)
        by_agent = {}
        for agent in agents_in_order:
            by_agent[agent] = _plan(size, steps, begin[agent], end[agent], closer[agent], occupied)
            occupied = occupied | by_agent[agent]
        path = jnp.stack([by_agent[agent] for agent in range(agents)])
        paths.append(path)
        found.append(functools.reduce(jnp.bitwise_and, any_cell(path[:, 0])))
    return _first(size, jnp.stack(found), jnp.stack(paths))


def _plan(
    size: int, steps: jax.Array, begin: jax.Array, end: jax.Array, closer: jax.Array, occupied: jax.Array
) -> jax.Array:
    """A shortest path of one agent that meets no other, for each of the ORDERS: its cells by time, like `occupied`.

    Args: steps, after which all are home; begin, end uint32 [C, U], one cell each; closer uint32 [4, C, U], where each
    move is a step nearer; occupied uint32 [T + 1, C', U], the `spaced` cells of others by time. A path that does not
    exist has no cells.

    A move is also left out if it enters a cell that another agent leaves while an agent enters the mover's own: for two
    agents just the swap, for more sometimes too strict.
    """
    cells, unit = begin.shape
    # Flat, so that a move is a shift of the whole.
    begin, end, closer, flat = (
        begin.reshape(-1),
        end.reshape(-1),
        closer.reshape(4, -1),
        occupied.reshape(-1, occupied[0].size),
    )
    moves, margin = [by * unit for by in offsets(size)[:4]], (size + 1) * unit

    def read(buffer: jax.Array, by: int = 0) -> jax.Array:
        return jax.lax.slice_in_dim(buffer, margin + by, margin + by + cells * unit, axis=-1)

    def written(buffer: jax.Array, states: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(buffer, states, (margin,))

    def at_time(stack: jax.Array, time: jax.Array) -> jax.Array:
        return jax.lax.dynamic_index_in_dim(stack, time, keepdims=False)

    def backward(i, carry):
        good, scratch, open_moves = carry
        time = steps - 1 - i
        now, soon = at_time(flat, time), read(at_time(flat, time + 1))
        moved = [closer[d] & read(good, by) & ~(read(now, by) & soon) for d, by in enumerate(moves)]
        reached = (functools.reduce(jnp.bitwise_or, moved) | (end & read(good))) & ~read(now)
        for d, move in enumerate(moved):
            open_moves = jax.lax.dynamic_update_slice(open_moves, move[None, None], (time, d, margin))
        # Written into the buffer that was read a step ago: so none is read and written at once.
        return written(scratch, reached), good, open_moves

    nowhere = jnp.zeros_like(flat[0])
    last = written(nowhere, end & ~read(at_time(flat, steps)))
    open_moves = jnp.zeros((flat.shape[0] - 1, 4, *nowhere.shape), jnp.uint32)
    good, _, open_moves = jax.lax.fori_loop(0, steps, backward, (last, nowhere, open_moves))
    before = {pair: jnp.tile(_before(*pair), nowhere.shape[0] // unit) for pair in itertools.permutations(range(4), 2)}

    def forward(time, path):
        at, leaving = at_time(path, time), at_time(open_moves, time)
        arrived = []
        for d, by in enumerate(moves):
            ahead = functools.reduce(jnp.bitwise_or, [leaving[e] & before[e, d] for e in range(4) if e != d])
            arrived.append(read(at & leaving[d] & ~ahead, -by))
        soon = functools.reduce(jnp.bitwise_or, arrived, read(at) & end)
        return jax.lax.dynamic_update_slice(path, soon[None], (time + 1, margin))

    path = jax.lax.dynamic_update_slice(jnp.zeros_like(flat), (begin & read(good))[None], (0, margin))
    return jax.lax.fori_loop(0, steps, forward, path).reshape(occupied.shape)


def _first(size: int, found: jax.Array, paths: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first attempt that succeeded: uint32 [P, U] and [P, K, T + 1, C', U] to bool [W, 32], int8 [W, 32, K, T].

    The attempts are P orders of the agents, and in each unit of U the ORDERS.
    """
    by_order = found.reshape(found.shape[0] * len(ORDERS), -1)
    done, chosen = jnp.zeros_like(by_order[0]), []
    for attempt in by_order:
        chosen.append(attempt & ~done)
        done = done | attempt
    mask = jnp.stack(chosen).reshape(found.shape)
    picked = functools.reduce(jnp.bitwise_or, [path & keep for path, keep in zip(paths, mask, strict=True)])
    by_word = functools.reduce(jnp.bitwise_or, jnp.split(picked, len(ORDERS), axis=-1))  # [K, T + 1, C', W]
    now, soon = by_word[:, :-1], by_word[:, 1:]
    taken = jnp.stack(
        [any_cell(read_spaced(size, now) & read_spaced(size, soon, by)) for by in offsets(size)[:4]]
    )  # [4, K, T, W]
    lanes = jnp.arange(BOARDS_PER_WORD)
    by_board = bit(jnp.moveaxis(taken, 3, 1)[:, :, None], lanes.reshape(-1, 1, 1)).astype(jnp.int8)  # [4, W, 32, K, T]
    moves = functools.reduce(jnp.add, [by_board[move] * jnp.int8(move - PAD) for move in range(4)])
    return bit(done[:, None], lanes) == 1, moves + jnp.int8(PAD)


def _before(move: int, other: int) -> jax.Array:
    """All ones for the ORDERS in which `move` comes before `other`: uint32 [U]."""
    ones = [0xFFFFFFFF if order.index(move) < order.index(other) else 0 for order in ORDERS]
    return jnp.repeat(jnp.array(ones, jnp.uint32), WORDS)


def _closer(distance: jax.Array) -> jax.Array:
    """Where each move is a step nearer to the goal: int16 [W, 32, K, n, n] to uint32 [K, 4, L]."""
    size = distance.shape[-1]
    around = jnp.pad(distance, ((0, 0), (0, 0), (0, 0), (1, 1), (1, 1)), constant_values=NO_PATH)
    nearer = [
        around[..., 1 + row : 1 + row + size, 1 + column : 1 + column + size] == distance - 1
        for row, column in DELTAS[:WAIT]
    ]
    packed = jnp.pad(jax.vmap(pack)(jnp.stack(nearer, axis=3)), ((0, 0), (0, 0), (0, 0), (0, 0), (0, 1)))
    return _by_unit(packed.reshape(*packed.shape[:3], -1))


def _one_hot(size: int, cells: jax.Array) -> jax.Array:
    """int32 [W, 32, K, 2] to uint32 [K, C, U]."""
    index = jnp.moveaxis(cell_index(size, cells), 2, 1)
    return _by_unit(one_hots(index, cell_count(size)))


def _by_unit(words: jax.Array) -> jax.Array:
    """uint32 [W, ..., C] to [..., C, U], the words once for each of the ORDERS."""
    return jnp.concatenate([jnp.moveaxis(words, 0, -1)] * len(ORDERS), axis=-1)


def _filled(boards: T, multiple: int) -> T:
    """A batch filled up to a multiple with its last board."""

    def fill(field: jax.Array) -> jax.Array:
        return jnp.pad(field, ((0, -field.shape[0] % multiple), *[(0, 0)] * (field.ndim - 1)), mode="edge")

    return jax.tree.map(fill, boards)
