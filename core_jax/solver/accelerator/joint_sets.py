"""Sets of joint states of two agents on many boards, and the states from which joint moves lead into them.

A set holds, for each cell of A, the cells of B: V words uint32 [n, n, G], A's row and column first. A move of A is a
shift along an axis, a move of B a shift of words (`cell_sets`), so XLA makes one kernel of a whole layer of a flood.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lakewright.core_jax.solver.accelerator.cell_sets import (
    WORD,
    CellSet,
    has_cell,
    lead_into,
    spread_flag,
    unite,
    word_count,
)
from lakewright.core_jax.types import DELTAS, OPPOSITE, WAIT

JointSet = tuple[jax.Array, ...]


def cells_of_a(size: int) -> np.ndarray:
    """The number of A's cell, int32 [n, n, 1]; a constant, which a kernel computes where it needs it."""
    return np.arange(size * size, dtype=np.int32).reshape(size, size, 1)


def own_cell(size: int) -> tuple[np.ndarray, ...]:
    """The states in which B stands on A's cell: V words uint32 [n, n, 1]."""
    a = cells_of_a(size).astype(np.uint32)
    bit = np.uint32(1) << (a & np.uint32(WORD - 1))
    return tuple(np.where(a >> 5 == w, bit, np.uint32(0)) for w in range(word_count(size)))


def by_cell_of_a(size: int, cells: CellSet) -> jax.Array:
    """Expands a set of A's cells, V words [G], to a word for each cell, all bits set or all clear: uint32 [n, n, G]."""
    return spread_flag(has_cell(tuple(word[None, None] for word in cells), jnp.asarray(cells_of_a(size))))


def pair_sets(size: int, of_a: CellSet, of_b: CellSet) -> JointSet:
    """The states with A in one set of cells and B in another, V words [G] each."""
    at_a = by_cell_of_a(size, of_a)
    return tuple(at_a & word[None, None] for word in of_b)


def make_legal_set(size: int, free: CellSet) -> JointSet:
    """The states with both agents on free cells, V words [G], not on the same one."""
    return tuple(states & ~own for states, own in zip(pair_sets(size, free, free), own_cell(size), strict=True))


def move_a(states: JointSet, move: int) -> JointSet:
    """The states from which a move of A alone leads into the set."""
    if move == WAIT:
        return states
    config = [(-by, by, 0) for by in DELTAS[move]] + [(0, 0, 0)]
    return tuple(lax.pad(word, jnp.uint32(0), config) for word in states)


def find_preceding_set(size: int, states: JointSet, waits: bool) -> JointSet:
    """The states from which a joint move leads into the set; states on holes among them, so `& legal_states`.

    Invariant: a joint move is a move of each agent into different cells, and not into each other's. With `moved` the
    states from which some move of A leads into the set, B still on its later cell, B's move m is undone by a shift. On
    the way two kinds of states drop out. B's later cell is A's present one: B follows A there, which is legal unless
    A's move was the opposite of m, a swap. Otherwise B's later cell is free of A before and after.

    waits: whether agents may wait; if not, both must move.
    """
    own = own_cell(size)
    moved = [move_a(states, move) for move in range(5 if waits else 4)]
    anywhere = unite(*moved)
    beside = tuple(word & ~own_word for word, own_word in zip(anywhere, own, strict=True))
    found = [beside] if waits else []  # B waits; A is on another cell before and after
    for move in range(4):
        # B follows A into the cell that A leaves; the opposite moves would swap them.
        others = unite(*(moved[k] for k in range(4) if k != OPPOSITE[move]))
        entered = tuple(x | (y & z) for x, y, z in zip(beside, others, own, strict=True))
        found.append(lead_into(size, entered, move))
    return unite(*found)


def has_state(states: JointSet, a: jax.Array, b: jax.Array) -> jax.Array:
    """Return whether a set holds a state of each board, int32 [G] cells: bool [G]."""
    return has_cell(read_row(states, a), b)


def read_row(states: JointSet, a: jax.Array) -> CellSet:
    """B's cells where A is on cell a, int32 [G]: V words [G]."""
    place = a * a.shape[0] + lax.iota(jnp.int32, a.shape[0])
    return tuple(word.reshape(-1).at[place].get(mode="promise_in_bounds") for word in states)


def settle(states: JointSet) -> JointSet:
    """The same sets, each computed once: XLA fuses nothing across."""
    return lax.optimization_barrier(states)


def differ_anywhere(states: JointSet, others: JointSet) -> jax.Array:
    """Return whether two sets differ, for each board: bool [G]."""
    changed = functools.reduce(jnp.bitwise_or, [x ^ y for x, y in zip(states, others, strict=True)])
    return lax.reduce(changed, jnp.uint32(0), lax.bitwise_or, range(changed.ndim - 1)) != 0
