"""What every pair of agents of a team needs on its own: the tables that bound a search for the whole team."""

import jax
import jax.numpy as jnp

from core_jax.lake import BOARDS_PER_WORD, bit, by_word, cell_index, pack_cells
from core_jax.solver.shortest_paths import FAR as NO_WAY
from core_jax.solver.teams.team import FAR, Team, pairs_of
from core_jax.solver.two_agents import CostTable, pair_flood
from core_jax.types import Board


@jax.jit
def teams(boards: Board, distance: jax.Array) -> Team:
    """The teams of B boards of K agents, B a multiple of 32; distance: int16 [B, K, n, n], as from `distances`."""
    size, agents = boards.holes.shape[-1], boards.starts.shape[1]
    pairs = pairs_of(agents)

    def of_word(word: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        holes, goals = word
        free, ends = pack_cells(~holes), cell_index(size, goals).T[pairs]  # [P, 2, 32]
        return jax.lax.map(lambda ends: _unpacked(pair_flood(size, free, ends)), ends)

    tables = jax.lax.map(of_word, (by_word(boards.holes), by_word(boards.goals)))  # [W, P, 32, ...]
    cost, wait, makespan, solo = (
        jnp.moveaxis(table, 2, 1).reshape(-1, len(pairs), *table.shape[3:]) for table in tables
    )
    alone = jnp.full((len(cost), agents, agents, cost.shape[-1]), FAR, jnp.uint8)
    alone = alone.at[:, pairs[:, 0], pairs[:, 1]].set(solo[:, :, 0]).at[:, pairs[:, 1], pairs[:, 0]].set(solo[:, :, 1])
    single = distance_bytes(distance)
    return Team(
        starts=cell_index(size, boards.starts),
        goals=cell_index(size, boards.goals),
        distance=single,
        alone=alone,
        pairs=jnp.stack([_without_waits(cost, wait, single), cost, makespan], axis=1),
    )


def distance_bytes(distance: jax.Array) -> jax.Array:
    """Distances int16 [B, K, n, n], as from `distances`, by padded cells: uint8 [B, K, N], at most FAR - 1 or FAR."""
    capped = jnp.where(distance < NO_WAY, jnp.minimum(distance, FAR - 1), FAR).astype(jnp.uint8)
    padded = jnp.pad(capped, ((0, 0), (0, 0), (0, 0), (0, 1)), constant_values=FAR)
    return padded.reshape(*distance.shape[:2], -1)


def _unpacked(table: CostTable) -> tuple[jax.Array, ...]:
    """Of 32 boards the cost, forced wait and makespan of each joint state [32, N, N], and `solo` [32, 2, N]."""
    assert table.arrival is not None
    cost, makespan = (_bytes(digits, table.reached) for digits in (table.cost, table.arrival))
    wait = jax.vmap(bit, (None, 0))(table.wait, jnp.arange(BOARDS_PER_WORD)).astype(bool)
    return cost, wait, makespan, _bytes(jnp.moveaxis(table.solo, 1, 0), table.solo_reached)


def _bytes(digits: jax.Array, reached: jax.Array) -> jax.Array:
    """Numbers in binary uint32 [bits, ...] to uint8 [32, ...]: at most FAR - 1, and FAR where not reached."""

    def of_board(lane: jax.Array) -> jax.Array:
        number = sum(bit(digits[place], lane) << place for place in range(len(digits)))
        return jnp.where(bit(reached, lane) == 1, jnp.minimum(number, FAR - 1), FAR).astype(jnp.uint8)

    return jax.vmap(of_board)(jnp.arange(BOARDS_PER_WORD))


def _without_waits(cost: jax.Array, wait: jax.Array, distance: jax.Array) -> jax.Array:
    """Lower bounds of the sum of costs without waits: more than the optimum where that has a forced wait.

    Every move changes the colour of its cell, so without waits all sums from a state are odd, or all are even.
    """
    pairs = pairs_of(distance.shape[1])
    parity = (distance[:, pairs[:, 0], :, None] + distance[:, pairs[:, 1], None, :] + cost) % 2
    more = jnp.minimum(cost, FAR - 3) + jnp.where(parity == 0, 2, 1).astype(jnp.uint8)
    return jnp.where(wait & (cost < FAR - 1), more, cost)
