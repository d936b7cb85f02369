"""EnvConfig + seed + count -> certified boards.

The distribution: a map with exactly the configured number of holes and a pair of goals are drawn uniformly, until some
pair of starts puts the board into the wanted stratum (solvable, with or without a forced wait); one such pair is picked
uniformly from the flood of that map. Compared with drawing whole boards and rejecting those outside the stratum, each
map that has the stratum counts once, not once for each of its pairs.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from core_jax.bitboards import BOARDS_PER_WORD, bit, by_word, cell_position, one_hot, side
from core_jax.config import EnvConfig, holes_of, largest_remainder
from core_jax.errors import InputError
from core_jax.floods import CostTable
from core_jax.parallel import cores, on_all_cores
from core_jax.solver import BLOCK, concatenate, flood, read_labels
from core_jax.types import Board, Labels

# A stratum found on fewer than one map in so many is given up.
MAPS_PER_BOARD = 256
MIN_MAPS = 16384


@dataclasses.dataclass(frozen=True)
class Stratum:
    """Boards of one size, with `holes` holes, on which an optimal plan must wait or need not."""

    size: int
    holes: int
    wait: bool

    def __str__(self) -> str:
        waits = "with a forced wait" if self.wait else "without a forced wait"
        return f"{self.size}x{self.size} boards with {self.holes} holes {waits}"


@dataclasses.dataclass(frozen=True)
class Batch:
    """Certified boards of one size. `index` int [B] is each board's place in the whole set; numpy arrays throughout."""

    boards: Board
    labels: Labels
    index: np.ndarray


def generate(
    config: EnvConfig, seed: int, count: int, on_progress: Callable[[int], None] = lambda boards: None
) -> dict[int, Batch]:
    """Draws `count` certified boards, by map size.

    Sizes and, within a size, forced waits have exactly the configured shares, rounded by largest remainder. The boards
    depend on config, seed and count alone; within a stratum, fewer boards are a prefix of more. `on_progress` is told
    of boards as they are made. Raises InputError where a stratum is not found.
    """
    if config.agents != 2:
        raise InputError(f"agents is {config.agents}: the generator draws boards for 2 agents; set agents to 2")
    if count < 1:
        raise InputError(f"count is {count}: ask for at least one board")
    if not 0 <= seed < 1 << 32:
        raise InputError(f"seed is {seed}: choose 0 to {(1 << 32) - 1}")
    shares = [cell.data_ratio for cell in config.sizes.values()]
    counts = dict(zip(config.sizes, largest_remainder(shares, count), strict=True))
    order = np.random.default_rng(seed).permutation(count)  # where each board stands in the whole set
    batches, used = {}, 0
    for size, boards in counts.items():
        if boards:
            index = order[used : used + boards]
            batches[size] = _of_size(config, size, jax.random.key(seed), index, on_progress)
            used += boards
    return batches


def check_reachable(config: EnvConfig, seed: int) -> None:
    """Raises InputError, saying which, where boards that `config` asks for are too rare to be found."""
    for size, cell in config.sizes.items():
        holes = holes_of(size, config.agents, cell.hole_ratio)
        for wait, share in ((True, cell.wait_ratio), (False, 1 - cell.wait_ratio)):
            if share * cell.data_ratio > 0:
                draw_stratum(Stratum(size, holes, wait), jax.random.key(seed), 1)


def _of_size(
    config: EnvConfig, size: int, key: jax.Array, index: np.ndarray, on_progress: Callable[[int], None]
) -> Batch:
    cell = config.sizes[size]
    holes = holes_of(size, config.agents, cell.hole_ratio)
    waits, free = largest_remainder([cell.wait_ratio, 1 - cell.wait_ratio], len(index))
    parts = []
    for wait, count in ((True, waits), (False, free)):
        if count:
            parts += draw_stratum(Stratum(size, holes, wait), key, count, on_progress)
    boards = jax.tree.map(lambda *fields: np.concatenate(fields), *(board for board, _ in parts))
    return Batch(boards, concatenate([labels for _, labels in parts]), index)


def draw_stratum(
    stratum: Stratum, key: jax.Array, count: int, on_progress: Callable[[int], None] = lambda boards: None
) -> list[tuple[Board, Labels]]:
    """The first `count` boards of a stratum's stream under `key`, in pieces of numpy arrays.

    Raises InputError when the stratum is too rare: fewer than one board in MAPS_PER_BOARD maps.
    """
    for part in (stratum.size, stratum.holes, int(stratum.wait)):
        key = jax.random.fold_in(key, part)
    pieces: list[tuple[Board, Labels]] = []
    found = maps = 0
    while found < count:
        if maps >= max(MIN_MAPS, MAPS_PER_BOARD * (found + 1)):
            raise InputError(
                f"{found} of {count} {stratum} found on {maps} random maps: too rare to go on; "
                f"change wait_ratio or hole_ratio of size {stratum.size}"
            )
        # The first block alone, as it may compile; then as many at once as are needed, and cores there are.
        blocks = min(cores(), -(-(count - found) // BLOCK)) if maps else 1
        starts = range(maps, maps + blocks * BLOCK, BLOCK)
        for boards, labels, met in on_all_cores(lambda first: _draw_block(stratum, key, first), starts):
            rows = np.flatnonzero(met)[: count - found]
            pieces.append(jax.tree.map(lambda field, rows=rows: np.asarray(field)[rows], (boards, labels)))
            found += len(rows)
            on_progress(len(rows))
        maps += blocks * BLOCK
    return pieces


def _draw_block(stratum: Stratum, key: jax.Array, first: int) -> tuple[Board, Labels, np.ndarray]:
    """Attempts first .. first + BLOCK - 1 of a stream: boards, labels, and which attempts met the stratum."""
    map_keys, start_keys = _attempt_keys(key, first)
    free, goals = _draw_maps(stratum.size, map_keys, stratum.holes)
    tables = flood(free, goals)
    starts, met = _pick_starts(tables, start_keys, stratum.wait)
    boards = Board(~free, starts, goals)
    return boards, read_labels(tables, boards), np.asarray(met)


@jax.jit
def _attempt_keys(key: jax.Array, first: int) -> tuple[jax.Array, jax.Array]:
    """Two keys for each of BLOCK attempts, each [BLOCK]."""
    attempts = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, first + jnp.arange(BLOCK))
    keys = jax.vmap(jax.random.split)(attempts)
    return keys[:, 0], keys[:, 1]


@functools.partial(jax.jit, static_argnums=0)
def _draw_maps(size: int, keys: jax.Array, holes: int) -> tuple[jax.Array, jax.Array]:
    """free bool [B, n, n] and goals int32 [B, 2, 2] of B maps."""
    return jax.vmap(lambda key: draw_map(size, key, holes))(keys)


@jax.jit
def _pick_starts(tables: CostTable, keys: jax.Array, wait: bool) -> tuple[jax.Array, jax.Array]:
    """Starts int32 [B, 2, 2] within the stratum and off the goals, and whether there were any, bool [B]."""

    def one_word(table, keys):
        at_goal = one_hot(table.goals[0], count) | one_hot(table.goals[1], count)
        wanted = jnp.where(wait, table.wait, table.reached & ~table.wait) & ~at_goal[:, None] & ~at_goal[None]
        return jax.vmap(pick_state, in_axes=(None, 0, 0))(wanted, jnp.arange(BOARDS_PER_WORD), keys)

    count = tables.reached.shape[-1]
    cells, met = jax.vmap(one_word)(tables, by_word(keys))
    return cell_position(side(count), cells.reshape(-1, 2)), met.reshape(-1)


def draw_map(size: int, key: jax.Array, holes: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """A map with exactly `holes` holes and two goals, uniform: free bool [n, n], goals int32 [2, 2].

    The key is consumed.
    """
    noise = jax.random.bits(key, (size * size,))
    cells = jnp.arange(size * size)
    # Ranks by comparing all pairs: for so few cells faster than a sort.
    before = (noise[None] < noise[:, None]) | ((noise[None] == noise[:, None]) & (cells[None] < cells[:, None]))
    rank = jnp.sum(before, axis=1)
    goals = jnp.stack([jnp.argmax(rank == 0), jnp.argmax(rank == 1)])
    free = (rank < 2) | (rank >= 2 + holes)
    return free.reshape(size, size), jnp.stack([goals // size, goals % size], axis=-1).astype(jnp.int32)


def pick_state(states: jax.Array, lane: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One joint state of board `lane`, uniform among those set in uint32 [N, N].

    Returns: its padded cells int32 [2], and whether there was any. The key is consumed.
    """
    members = bit(states, lane)
    in_row = jnp.sum(members, axis=1)
    total = jnp.sum(in_row)
    wanted = jax.random.randint(key, (), 0, jnp.maximum(total, 1)).astype(jnp.uint32)
    up_to_row = jnp.cumsum(in_row)
    row = jnp.argmax(up_to_row > wanted)
    up_to_column = jnp.cumsum(members[row]) + up_to_row[row] - in_row[row]
    column = jnp.argmax(up_to_column > wanted)
    return jnp.stack([row, column]).astype(jnp.int32), total > 0
