"""What every pair of agents needs on its own: the tables that bound a search for the whole team."""

import jax
import jax.numpy as jnp

from core_jax.bitboards import BOARDS_PER_WORD, bit, by_word, cell_index, cell_count, one_hot, pack_cells
from core_jax.floods import CostTable, joint_predecessors, joint_states, sum_of_costs_flood
from core_jax.search import FAR, Mode, Team, pairs_of
from core_jax.types import Board


def arrival_flood(size, free, goals):
    count = cell_count(size)
    states = joint_states(free)
    start = one_hot(goals[0], count)[:, None] & one_hot(goals[1], count)[None] & states
    bits = 8

    def layer(carry):
        t, planes, reached, _ = carry
        after = reached | (joint_predecessors(size, reached, waits=True) & states)
        new = after & ~reached
        digits = -(t >> jnp.arange(bits, dtype=jnp.uint32) & 1)
        return t + 1, planes | (new & digits[:, None, None]), after, jnp.any(new != 0)

    planes = jnp.zeros((bits, *start.shape), jnp.uint32)
    return jax.lax.while_loop(lambda c: c[3], layer, (jnp.uint32(1), planes, start, jnp.array(True)))[1]


def numbers(planes, reached):
    """uint32 [bits, ...] to uint8 [32, ...]."""
    lanes = jnp.arange(32, dtype=jnp.uint32)

    def lane(i):
        value = jnp.zeros(reached.shape, jnp.uint32)
        for b in range(planes.shape[0]):
            value = value + ((planes[b] >> i & 1) << b)
        return jnp.where(reached >> i & 1, jnp.minimum(value, FAR - 1), FAR).astype(jnp.uint8)

    return jax.vmap(lane)(lanes)


@jax.jit
def teams(boards: Board) -> Team:
    """Teams of B boards (a multiple of 32) of K agents."""
    size, agents = boards.holes.shape[-1], boards.starts.shape[1]
    pairs = pairs_of(agents)

    def one_word(word):
        holes, goals = word
        free = pack_cells(~holes)
        at = cell_index(size, goals).T  # [K, 32]

        def pair(ends):
            table = sum_of_costs_flood(size, free, ends)
            arrival = arrival_flood(size, free, ends)
            cost = numbers(table.cost, table.reached)
            wait = (table.wait[None] >> jnp.arange(32, dtype=jnp.uint32)[:, None, None] & 1).astype(bool)
            return (
                cost,
                wait,
                numbers(arrival, table.reached),
                numbers(jnp.moveaxis(table.solo, 1, 0), table.solo_reached),
            )

        return jax.lax.map(pair, at[pairs])  # [P, 32, ...]

    cost, wait, makespan, solo = jax.lax.map(one_word, (by_word(boards.holes), by_word(boards.goals)))
    board = lambda x: jnp.moveaxis(x, 1, 2).reshape(-1, len(pairs), *x.shape[3:])
    cost, wait, makespan, solo = map(board, (cost, wait, makespan, solo))  # [B, P, ...]; solo [B,P,2,N]
    alone = jnp.full((cost.shape[0], agents, agents, cost.shape[-1]), FAR, jnp.uint8)
    alone = alone.at[:, pairs[:, 0], pairs[:, 1]].set(solo[:, :, 0]).at[:, pairs[:, 1], pairs[:, 0]].set(solo[:, :, 1])
    distance = jax.vmap(jax.vmap(_distance, in_axes=(None, 0)), in_axes=(0, 0))(~boards.holes, boards.goals)
    i = jnp.arange(cost.shape[-1])
    single = jnp.where(distance < FAR, distance, 0).astype(jnp.uint16)
    parity = (cost.astype(jnp.uint16) + single[:, pairs[:, 0]][..., :, None] + single[:, pairs[:, 1]][..., None, :]) % 2
    moving = jnp.where(wait & (cost < FAR), jnp.minimum(cost + 1 + (parity == 0), FAR - 1), cost).astype(jnp.uint8)
    starts = cell_index(size, boards.starts)
    return Team(
        jnp.zeros(starts.shape, bool),
        starts,
        cell_index(size, boards.goals),
        distance,
        alone,
        jnp.stack([moving, cost, makespan], axis=1),
    )


def _distance(free, goal):
    from core_jax.shortest import distance_to, FAR as VERY

    d = jnp.pad(distance_to(free, goal), ((0, 0), (0, 1)), constant_values=VERY).reshape(-1)
    return jnp.minimum(d, FAR).astype(jnp.uint8)
