"""The arrays of the lake.

Shape letters, used in every docstring: B boards, K agents, H = W' = n the side of a board, T steps of a plan,
N = n (n + 1) padded cells of a bitboard, W words of 32 boards.
"""

import enum

import flax.struct
import jax

MOVES = "UDLRW"
UP, DOWN, LEFT, RIGHT, WAIT = range(5)
# What a codec answers with when it names a cell that is no neighbour: always an illegal move, `?` in writing.
JUMP = 5
LETTERS = MOVES + "?"
PAD = -1  # after an agent's last move: it stays where it is
DELTAS = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
OPPOSITE = (DOWN, UP, RIGHT, LEFT, WAIT)


class Failure(enum.IntEnum):
    """Why a plan is not valid. Within one step the smaller number is reported."""

    NONE = 0
    PARSE_ERROR = 1
    ILLEGAL_MOVE = 2
    HOLE = 3
    VERTEX_CONFLICT = 4
    SWAP_CONFLICT = 5
    GOAL_NOT_REACHED = 6


FAILURE_NAMES = tuple(failure.name.lower() for failure in Failure)


@flax.struct.dataclass
class Board:
    """One board, or a batch of them with a leading axis B.

    holes: bool [n, n]. starts, goals: int32 [K, 2], (row, column) from the top left; all free; the
    generator keeps all 2K cells distinct, the solver only needs distinct starts and distinct goals.
    """

    holes: jax.Array
    starts: jax.Array
    goals: jax.Array


@flax.struct.dataclass
class Verdict:
    """What became of a plan.

    failure: int32 [], a `Failure`. agent: int32 [], the first agent concerned, -1 if none. step: int32 [], the index of
    the offending move (for GOAL_NOT_REACHED the plan's length), -1 if none. makespan, sum_of_costs: int32 [], of a
    valid plan; -1 otherwise. legal_steps: int32 [], joint moves before the first failure. at_goal: bool [K], who
    stood on their goal when the plan ended or failed.
    """

    failure: jax.Array
    agent: jax.Array
    step: jax.Array
    makespan: jax.Array
    sum_of_costs: jax.Array
    legal_steps: jax.Array
    at_goal: jax.Array


@flax.struct.dataclass
class Labels:
    """Certified labels of one board, or of a batch.

    solvable: bool []. makespan, sum_of_costs: int32 [], each the optimum of its own objective, -1 if unsolvable.
    wait_required: bool []. moves: int8 [K, T], a plan that reaches sum_of_costs, padded with PAD; it is free of waits
    before final arrivals unless wait_required.
    """

    solvable: jax.Array
    makespan: jax.Array
    sum_of_costs: jax.Array
    wait_required: jax.Array
    moves: jax.Array
