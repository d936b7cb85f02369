"""Sets of joint states of three agents on many boards, and the states from which joint moves lead into them.

A set holds, for each cell of A and each cell of B, the cells of C: V words uint32 [n, n, n, n, G], A's row and column
first. Moves of A and B are shifts along axes, a move of C a shift of words, as in `joint_sets`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lakewright.core_jax.solver.accelerator.cell_sets import CellSet, has_cell, lead_into, move_steps, unite
from lakewright.core_jax.solver.accelerator.joint_sets import JointSet, by_cell_of_a, cells_of_a, own_cell
from lakewright.core_jax.types import DELTAS, OPPOSITE, WAIT


def along_a(words: tuple) -> tuple:
    """Words [n, n, *], by A's cell, for all cells of B: [n, n, 1, 1, *]."""
    return tuple(word[:, :, None, None] for word in words)


def along_b(words: tuple) -> tuple:
    """Words [n, n, *], by B's cell, for all cells of A: [1, 1, n, n, *]."""
    return tuple(word[None, None] for word in words)


def make_legal_team_set(size: int, free: CellSet) -> JointSet:
    """The states with all agents on free cells, V words [G], no two on the same one."""
    at = by_cell_of_a(size, free)
    (a,), (b,) = along_a((cells_of_a(size),)), along_b((cells_of_a(size),))
    apart = np.where(a == b, np.uint32(0), np.uint32(0xFFFFFFFF))
    pair = at[:, :, None, None] & at[None, None] & apart
    taken = unite(*_own_cells(size))
    return tuple(pair & word[None, None, None, None] & ~own for word, own in zip(free, taken, strict=True))


def make_home_set(size: int, homes: tuple[CellSet, CellSet, CellSet]) -> JointSet:
    """The states with each agent in its own set of cells, V words [G] each."""
    of_a, of_b, of_c = homes
    pair = by_cell_of_a(size, of_a)[:, :, None, None] & by_cell_of_a(size, of_b)[None, None]
    return tuple(pair & word[None, None, None, None] for word in of_c)


def find_preceding_team_set(size: int, states: JointSet, waits: bool) -> JointSet:
    """The states from which a joint move leads into the set; illegal states among them, so `& make_legal_team_set`.

    Invariant: as in `find_preceding_set`. The moves of A and B are undone first, except swaps of the two; C is still on
    its later cell. That cell is free of A and B before and after, or it is A's (B's) present cell: then C follows A
    (B), which is legal unless A's (B's) move was the opposite of C's.

    Args:
        size: n, the cells on a side of the boards.
        states: the set, of legal states.
        waits: whether agents may wait; if not, all must move.
    """
    own_a, own_b = _own_cells(size)
    moves = range(5 if waits else 4)
    moved = {(k, m): _move_both(size, states, k, m) for k in moves for m in moves}
    by_a = [unite(*(moved[k, m] for m in moves)) for k in moves]
    by_b = [unite(*(moved[k, m] for k in moves)) for m in moves]
    apart = tuple(x & ~(p | q) for x, p, q in zip(unite(*by_a), own_a, own_b, strict=True))
    # If C waits, A and B are off its cell before and after their moves.
    found = [apart] if waits else []
    for move in range(4):
        behind_a, behind_b = (unite(*(one[k] for k in moves if k != OPPOSITE[move])) for one in (by_a, by_b))
        words = zip(apart, own_a, behind_a, own_b, behind_b, strict=True)
        found.append(lead_into(size, tuple(x | (p & f) | (q & g) for x, p, f, q, g in words), move))
    return unite(*found)


def has_team_state(states: JointSet, cells: jax.Array) -> jax.Array:
    """Return whether a set holds a state of each board, int32 [3, G] cells: bool [G]."""
    size, group = states[0].shape[0], cells.shape[1]
    place = (cells[0] * size**2 + cells[1]) * group + lax.iota(jnp.int32, group)
    line = tuple(word.reshape(-1).at[place].get(mode="promise_in_bounds") for word in states)
    return has_cell(line, cells[2])


@functools.cache
def _own_cells(size: int) -> tuple[tuple, tuple]:
    """The states in which C stands on A's cell, and on B's: V words uint32 [n, n, 1, 1, 1] and [1, 1, n, n, 1]."""
    return along_a(own_cell(size)), along_b(own_cell(size))


def _move_both(size: int, states: JointSet, move_a: int, move_b: int) -> JointSet:
    """The states from which moves of A and B, which do not swap them, lead into the set, C staying where it is."""
    config = [(0, 0, 0)] * 5
    for axis, move in ((0, move_a), (2, move_b)):
        if move != WAIT:
            config[axis : axis + 2] = [(-by, by, 0) for by in DELTAS[move]]
    # Padding by a negative width cuts off: every state moves at once, and none leaves the board.
    moved = tuple(lax.pad(word, jnp.uint32(0), config) for word in states)
    if move_a == WAIT or move_b != OPPOSITE[move_a]:
        return moved
    (a,), (b,) = along_a((cells_of_a(size),)), along_b((cells_of_a(size),))
    apart = np.where(b == a + move_steps(size)[move_a], np.uint32(0), np.uint32(0xFFFFFFFF))
    return tuple(word & apart for word in moved)
