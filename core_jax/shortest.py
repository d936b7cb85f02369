"""The cheapest certificate: shortest paths of the two agents that never meet.

Such a pair reaches the lower bounds of both objectives, max and sum of the single distances, without a wait; so it
proves the optima and that no wait is required. And an agent without any path proves the board unsolvable.
"""

import functools

import chex
import flax.struct
import jax
import jax.numpy as jnp

from core_jax.types import DELTAS, DOWN, LEFT, PAD, RIGHT, UP, WAIT, Board, Certificate, Labels, Status

FAR = 1 << 14  # the distance from where there is no way
# Which of several shortest moves to take: a path for each order, every pair of paths is tried.
ORDERS = ((UP, DOWN, LEFT, RIGHT), (DOWN, UP, RIGHT, LEFT), (LEFT, RIGHT, UP, DOWN), (RIGHT, LEFT, DOWN, UP))


@flax.struct.dataclass
class Certified:
    """What the certificate says of a board: `proven` bool [] tells if `labels` are certain."""

    proven: jax.Array
    labels: Labels


@jax.jit
def distances(boards: Board) -> jax.Array:
    """The single distance of every cell to each goal, FAR where there is no way: int16 [B, 2, n, n]."""
    to_goals = jax.vmap(distance_to, in_axes=(None, 0))
    return jax.vmap(to_goals)(~boards.holes, boards.goals)


@functools.partial(jax.jit, static_argnums=0)
def certify(horizon: int, boards: Board, distance: jax.Array) -> Certified:
    """Tries all pairs of shortest paths by ORDERS on B boards. horizon: at least the largest finite distance."""
    return jax.vmap(functools.partial(_certify, horizon))(boards, distance)


def distance_to(free: jax.Array, goal: jax.Array) -> jax.Array:
    """Distances of all cells to `goal`, int32 [2], over free bool [n, n]: int16 [n, n], FAR where there is no way."""
    chex.assert_rank([free, goal], [2, 1])

    def relax(carry):
        distance, _ = carry
        around = jnp.pad(distance, 1, constant_values=FAR)
        nearest = functools.reduce(
            jnp.minimum, [around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]]
        )
        closer = jnp.where(free, jnp.minimum(distance, nearest + jnp.int16(1)), jnp.int16(FAR))
        return closer, jnp.any(closer != distance)

    at_goal = jnp.full(free.shape, FAR, jnp.int16).at[goal[0], goal[1]].set(0)
    return jax.lax.while_loop(lambda carry: carry[1], relax, (at_goal, jnp.array(True)))[0]


def shortest_path(horizon: int, distance: jax.Array, start: jax.Array, order: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A shortest path, of several moves the first in `order`: moves int8 [T] padded with PAD, and cells int16 [T]
    after each, numbered row by row on a board with a margin of one.
    """
    side = distance.shape[0] + 2
    around = jnp.pad(distance, 1, constant_values=FAR).reshape(-1)
    by = jnp.array([row * side + column for row, column in DELTAS], jnp.int32)

    def walk(cell, _):
        closer = around[cell + by[order]] == around[cell] - 1
        move = jnp.where(jnp.any(closer), order[jnp.argmax(closer)], WAIT)
        cell = cell + by[move]
        return cell, (jnp.where(move == WAIT, PAD, move).astype(jnp.int8), cell.astype(jnp.int16))

    first = (start[0] + 1) * side + start[1] + 1
    _, (moves, cells) = jax.lax.scan(walk, first, length=horizon)
    return moves, cells


def _certify(horizon: int, board: Board, distance: jax.Array) -> Certified:
    agents = jnp.arange(2)
    away = distance[agents, board.starts[:, 0], board.starts[:, 1]].astype(jnp.int32)
    solvable = jnp.all(away < FAR)
    orders = jnp.array(ORDERS, jnp.int32)
    by_order = jax.vmap(functools.partial(shortest_path, horizon), in_axes=(None, None, 0))
    moves, cells = jax.vmap(by_order, in_axes=(0, 0, None))(distance, board.starts, orders)  # [2, orders, T]
    first = (board.starts[:, 0] + 1) * (board.holes.shape[0] + 2) + board.starts[:, 1] + 1
    before = jnp.concatenate([jnp.broadcast_to(first[:, None, None], (*cells.shape[:2], 1)), cells[..., :-1]], axis=-1)
    a, b, a_before, b_before = cells[0][:, None], cells[1][None], before[0][:, None], before[1][None]
    meet = jnp.any((a == b) | ((a == b_before) & (b == a_before)), axis=-1).reshape(-1)
    pair = jnp.argmin(meet)
    proven = ~solvable | ~meet[pair]
    plan = jnp.stack([moves[0, pair // len(ORDERS)], moves[1, pair % len(ORDERS)]])
    return Certified(
        proven=proven,
        labels=Labels(
            status=jnp.where(solvable, Status.SOLVABLE, Status.UNSOLVABLE),
            certificate=jnp.array(Certificate.BOUND, jnp.int32),
            makespan=jnp.where(solvable, jnp.max(away), -1),
            sum_of_costs=jnp.where(solvable, jnp.sum(away), -1),
            wait_required=jnp.array(False),
            moves=jnp.where(solvable, plan, PAD).astype(jnp.int8),
        ),
    )
