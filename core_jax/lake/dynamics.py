"""The simulator: one joint step, and the verdict on a whole plan.

Agents are few and their number is known when a program is traced, so loops over agents are unrolled: the code works on
single numbers. Under vmap each becomes a vector over boards, the batch innermost, which suits vector units.
"""

import functools
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import TypeAlias

import chex
import jax
import jax.numpy as jnp

from lakewright.core_jax.support.jax_settings import check_process
from lakewright.core_jax.types import DOWN, LEFT, PAD, RIGHT, UP, WAIT, Board, BoardVerdict, Failure

CellArrays: TypeAlias = tuple[jax.Array, jax.Array]  # row and column
IsHole: TypeAlias = Callable[[CellArrays], jax.Array]
BITS = 32  # cells in a word of packed holes
PACKED_SIZE = 16  # up to here a word is found by a chain of selects, which vectorises; a gather does not


def step(holes: jax.Array, positions: jax.Array, moves: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Moves every agent once.

    Args:
        holes: bool [n, n].
        positions: int32 [K, 2].
        moves: int8 [K], codes of `MOVES`, or PAD to stay; any other code, such as JUMP, is an illegal move.

    Returns: positions int32 [K, 2] after the step (agents off the board are clipped to it), the `Failure` int32 [] of
    the step, and the first agent int32 [] concerned (-1 if there isn't one). Following and rotating are allowed;
    meeting in a cell (vertex conflict) and exchanging cells (swap conflict) are not.
    """
    chex.assert_rank([holes, positions, moves], [2, 2, 1])
    chex.assert_equal_shape_prefix([positions, moves], 1)
    size = holes.shape[0]
    cells = _split_cells(positions)
    targets = [_move_cell(cell, move) for cell, move in zip(cells, moves, strict=True)]
    # Off the board some cell on it is read instead; the illegal move is reported before the hole.
    code = _find_failure(size, lambda cell: holes[cell], cells, targets, moves)
    reached = jnp.clip(jnp.array(targets, jnp.int32), 0, size - 1)
    return reached, *_split_code(code, len(cells))


def verdict(board: Board, moves: jax.Array) -> BoardVerdict:
    """Plays a whole plan from the starts: the first failure, or the plan's costs.

    Args:
        board: one board.
        moves: int8 [K, T], codes as in `step`.

    To judge many plans, vmap over boards and plans together.
    """
    check_process()
    chex.assert_rank([board.holes, board.starts, moves], [2, 2, 2])
    chex.assert_equal_shape_prefix([board.starts, board.goals, moves], 1)
    size, (agents, steps) = board.holes.shape[0], moves.shape
    # The narrowest type that holds a cell's index and a time: half the width is twice as many at a time.
    number = jnp.int16 if max(size * size, steps + 2) < 1 << 15 else jnp.int32
    starts, goals = _split_cells(board.starts.astype(number)), _split_cells(board.goals.astype(number))
    is_hole = _make_hole_lookup(board.holes)

    def play_step(carry, joint_move):
        cells, arrivals, code, time = carry
        targets = [_move_cell(cell, move) for cell, move in zip(cells, joint_move, strict=True)]
        code = jnp.where(code == 0, _find_failure(size, is_hole, cells, targets, joint_move), code)
        legal = code == 0
        time += legal.astype(number)
        cells = [
            (jnp.where(legal, to[0], at[0]), jnp.where(legal, to[1], at[1]))
            for to, at in zip(targets, cells, strict=True)
        ]
        # An agent seen away from its goal at time t arrives at t + 1 at the earliest.
        home = [_is_same_cell(cell, goal) for cell, goal in zip(cells, goals, strict=True)]
        arrivals = [jnp.where(at, arrival, time + number(1)) for at, arrival in zip(home, arrivals, strict=True)]
        return (cells, arrivals, code, time), None

    arrivals = [(~_is_same_cell(start, goal)).astype(number) for start, goal in zip(starts, goals, strict=True)]
    start = (starts, arrivals, number(0), number(0))
    (cells, arrivals, code, time), _ = jax.lax.scan(play_step, start, list(moves))

    home = [_is_same_cell(cell, goal) for cell, goal in zip(cells, goals, strict=True)]
    length = jnp.max(jnp.sum(moves != PAD, axis=1, dtype=jnp.int32))
    failed = code != 0
    code = jnp.where(
        failed, code, _pick_first_code([(Failure.GOAL_NOT_REACHED, i, ~at) for i, at in enumerate(home)], agents)
    )
    valid = code == 0
    failure, agent = _split_code(code, agents)
    arrivals, time = [arrival.astype(jnp.int32) for arrival in arrivals], time.astype(jnp.int32)
    return BoardVerdict(
        failure=failure,
        agent=agent,
        step=jnp.where(failed, time, jnp.where(valid, -1, length)),
        makespan=jnp.where(valid, functools.reduce(jnp.maximum, arrivals), -1),
        sum_of_costs=jnp.where(valid, sum(arrivals), -1),
        legal_steps=jnp.minimum(time, length),
        at_goal=jnp.array(home),
    )


def _split_cells(positions: jax.Array) -> list[CellArrays]:
    """[K, 2] as a cell for each agent."""
    return [(row, column) for row, column in positions]


def _move_cell(cell: CellArrays, move: jax.Array) -> CellArrays:
    """The cell that a move leads to, on the board or off it; any other code stays."""
    row, column = cell

    def step(forward: int, back: int) -> jax.Array:
        return (move == forward).astype(row.dtype) - (move == back).astype(row.dtype)

    return row + step(DOWN, UP), column + step(RIGHT, LEFT)


def _is_same_cell(one: CellArrays, other: CellArrays) -> jax.Array:
    return (one[0] == other[0]) & (one[1] == other[1])


def _find_failure(
    size: int, is_hole: IsHole, cells: list[CellArrays], targets: list[CellArrays], moves: Iterable[jax.Array]
) -> jax.Array:
    """The code of the first failure of a step, int16 []; 0 without a failure.

    Args:
        size: n, the cells on a side of the board.
        is_hole: tells whether a cell is a hole.
        cells: each agent's cell before the step.
        targets: each agent's cell after it.
        moves: each agent's move, int8 [].
    """
    pairs = list(combinations(range(len(cells)), 2))  # the first of a pair is reported
    illegal = (_is_illegal(size, cell, move) for cell, move in zip(targets, moves, strict=True))
    meeting = ((i, _is_same_cell(targets[i], targets[j])) for i, j in pairs)
    exchanging = ((i, _is_same_cell(targets[i], cells[j]) & _is_same_cell(targets[j], cells[i])) for i, j in pairs)
    failing = {
        Failure.ILLEGAL_MOVE: enumerate(illegal),
        Failure.HOLE: enumerate(is_hole(cell) for cell in targets),
        Failure.VERTEX_CONFLICT: meeting,
        Failure.SWAP_CONFLICT: exchanging,
    }
    return _pick_first_code([(kind, i, seen) for kind, agents in failing.items() for i, seen in agents], len(cells))


def _is_illegal(size: int, target: CellArrays, move: jax.Array) -> jax.Array:
    row, column = target
    off_board = (row < 0) | (row >= size) | (column < 0) | (column >= size)
    return off_board | (move < PAD) | (move > WAIT)


def _pick_first_code(found: list[tuple[Failure, int, jax.Array]], agents: int) -> jax.Array:
    """The first failure that occurs, and its agent, in one number: failure x agents + agent, or 0."""
    code = jnp.int16(0)
    for failure, agent, seen in reversed(found):
        code = jnp.where(seen, jnp.int16(failure * agents + agent), code)
    return code


def _split_code(code: jax.Array, agents: int) -> tuple[jax.Array, jax.Array]:
    """The two parts of a number of `_pick_first_code`: `Failure` and agent (-1 if there isn't one), both int32."""
    code = code.astype(jnp.int32)
    return code // agents, jnp.where(code == 0, -1, code % agents)


def _make_hole_lookup(holes: jax.Array) -> IsHole:
    """A function that returns whether a cell is a hole of bool [n, n]; undefined for a cell off the board."""
    size = holes.shape[0]
    if size > PACKED_SIZE:
        return lambda cell: holes[cell]
    bits = [hole.astype(jnp.uint32) << i % BITS for i, hole in enumerate(holes.reshape(-1))]
    words = [functools.reduce(jnp.bitwise_or, bits[i : i + BITS]) for i in range(0, len(bits), BITS)]

    def is_hole(cell: CellArrays) -> jax.Array:
        index = cell[0] * size + cell[1]
        word = words[0]
        for i, later in enumerate(words[1:], 1):
            word = jnp.where(index >= i * BITS, later, word)
        return (word >> (index & (BITS - 1)).astype(jnp.uint32)) & 1 == 1

    return is_hole
