"""Attempts at maps for two agents on accelerators: drawn, flooded, picked from and labelled without leaving the device.

It draws the same boards as `attempts` for the same lanes: the same random numbers choose among the same states in the
same order.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lakewright.core_jax.generator.placements import pick_place, scale_below
from lakewright.core_jax.lake.label_batches import take_rows
from lakewright.core_jax.solver.accelerator.cell_sets import CellSet, mark_cells, pack_free_cells, spread_flag
from lakewright.core_jax.solver.accelerator.cost_floods import CostFlood
from lakewright.core_jax.solver.accelerator.device_solver import copy_back, label_cells
from lakewright.core_jax.solver.accelerator.joint_sets import JointSet, by_cell_of_a, differ_anywhere, read_row
from lakewright.core_jax.solver.accelerator.packing import make_empty_labels, write_labels
from lakewright.core_jax.solver.accelerator.sizes import Sizes
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import Board, Labels

BLOCKS = (1 << 16, 1 << 12)  # attempts made at once


def attempt_maps(size: int, maps: tuple[jax.Array, jax.Array], wait: np.ndarray, tickets: jax.Array) -> tuple:
    """Picks starts on L maps and labels the boards: which have the stratum, bool [L], these boards, and their labels.

    Args: size n; maps, free bool [L, n, n] and goals int32 [L, 2, 2]; wait, bool [L], the strata; tickets, uint32 [L].
    """
    free, goals = maps
    words, cells, met = pick_starts(size, free, goals, wait, tickets)
    count = len(wait)
    sizes = Sizes(count, max(count // 4, 32), max(count // 32, 32))
    labels = make_labels(size, sizes, words, cells, met)
    chosen, starts = np.asarray(met), cells[:2].T
    boards = Board(~free, jnp.stack([starts // size, starts % size], axis=-1), goals)
    return chosen, *take_rows((boards, labels), chosen)


def make_labels(size: int, sizes: Sizes, free: CellSet, cells: jax.Array, wanted: jax.Array) -> Labels:
    """Labels of the wanted boards, all from floods, as numpy arrays; of others anything.

    Args: size n; sizes; free, V words uint32 [B]; cells, int32 [4, B]; wanted, bool [B].
    """
    packed = copy_back(sizes, label_cells(size, sizes, free, cells, wanted))
    labels = make_empty_labels(len(packed.words), packed.horizon)
    write_labels(labels, 0, packed)
    return labels


@program(static_argnums=0)
def pick_starts(
    size: int, free: jax.Array, goals: jax.Array, wait: jax.Array, tickets: jax.Array
) -> tuple[CellSet, jax.Array, jax.Array]:
    """Floods maps, and picks starts within the strata and off the goals.

    Returns: the free cells, V words uint32 [B]; both starts, then both goals, int32 [4, B]; whether there were any
    such starts, bool [B].

    Args:
        size: n, the cells on a side of the boards.
        free: bool [B, n, n].
        goals: int32 [B, 2, 2].
        wait: bool [B], the strata.
        tickets: uint32 [B], random.
    """
    words = pack_free_cells(Board(~free, goals, goals))
    ends = (goals[..., 0] * size + goals[..., 1]).T
    flood = CostFlood.of_boards(size, words, ends)
    reached, unforced = flood_everywhere(flood)
    home = tuple(x | y for x, y in zip(mark_cells(size, ends[0]), mark_cells(size, ends[1]), strict=True))
    off_a, with_wait = ~by_cell_of_a(size, home), spread_flag(wait)[None, None]
    states = tuple(
        r & (u ^ with_wait) & off_a & ~h[None, None] for r, u, h in zip(reached, unforced, home, strict=True)
    )
    starts, met = _pick_states(size, lax.optimization_barrier(states), tickets)
    return words, jnp.concatenate([starts, ends]), met


def flood_everywhere(flood: CostFlood) -> tuple[JointSet, JointSet]:
    """The states from which the goals can be reached, and those from which an optimal plan never waits.

    Invariant: R_c, once equal to R_{c-1} and R_{c-2}, holds all states before it, so no later layer is larger.
    """

    def flood_two_layers(carry):
        older, last, front, unforced, alone, _ = carry
        soon = flood.grow_alone(alone)
        odd_layer = flood.grow(older, last, alone)
        even_layer = flood.grow(last, odd_layer, soon)
        later = flood.grow_alone(soon)
        front = flood.grow_unforced(front, later, odd_layer, even_layer)
        unforced = lax.optimization_barrier(tuple(x | y for x, y in zip(unforced, front, strict=True)))
        going = jnp.any(differ_anywhere(last, odd_layer) | differ_anywhere(odd_layer, even_layer))
        return odd_layer, even_layer, front, unforced, later, going

    home = tuple(jnp.stack([a, b]) & free[None] for a, b, free in zip(*flood.home, flood.free, strict=True))
    none = tuple(jnp.zeros_like(word) for word in flood.park(home))
    first, alone = flood.grow(none, none, home), flood.grow_alone(home)
    front = flood.grow_unforced(none, alone, none, none)
    begin = (none, first, front, front, alone, jnp.array(True))
    _, reached, _, unforced, _, _ = lax.while_loop(lambda carry: carry[5], flood_two_layers, begin)
    return reached, unforced


def _pick_states(size: int, states: JointSet, tickets: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One state of each board among those set: both cells, int32 [2, B], and whether there were any, bool [B].

    The states are counted by A's cell and then by B's, as `attempts.pick_states` does. tickets: uint32 [B], random.
    """
    cells = size * size
    counts = [jnp.bitwise_count(word).astype(jnp.int32).reshape(cells, -1) for word in states]
    in_row = sum(counts[1:], counts[0]).T  # [B, n^2]
    total = jnp.sum(in_row, axis=1, dtype=jnp.int32)
    row, left = jax.vmap(pick_place)(in_row, scale_below(tickets, total))
    row = jnp.where(total > 0, row, 0).astype(jnp.int32)
    places = jnp.arange(32, dtype=jnp.uint32)
    bits = [word[:, None] >> places[None] & 1 for word in read_row(states, row)]
    column, _ = jax.vmap(pick_place)(jnp.concatenate(bits, axis=1).astype(jnp.int32), left)
    return jnp.stack([row, jnp.where(total > 0, column, 0).astype(jnp.int32)]), total > 0
