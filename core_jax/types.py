"""The arrays of the lake.

Shape letters, used in every docstring: B boards, K agents, H = W' = n the side of a board, T steps of a plan,
N = n (n + 1) padded cells of a bitboard, W words of 32 boards.
"""

import enum

import flax.struct
import jax

MOVES = "UDLRW"
UP, DOWN, LEFT, RIGHT, WAIT = range(5)
# The move of a plan of cells to one that is not a neighbour: always illegal, written `?`.
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


class Status(enum.IntEnum):
    """Whether a board is solvable. UNDECIDED: the search was not completed, so the board has no labels."""

    SOLVABLE = 0
    UNSOLVABLE = 1
    UNDECIDED = 2


STATUS_NAMES = tuple(status.name.lower() for status in Status)


class Certificate(enum.IntEnum):
    """Why a label is certain.

    BOUND: a plan meets a lower bound (or an agent has no path at all). FLOOD: exhaustive, over all joint states.
    SEARCH: a completed search of the joint states that the bounds leave. NONE: undecided.
    """

    NONE = 0
    BOUND = 1
    FLOOD = 2
    SEARCH = 3


CERTIFICATE_NAMES = tuple(certificate.name.lower() for certificate in Certificate)


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
    """The verdict on a plan.

    failure: int32 [], a `Failure`. agent: int32 [], the first agent concerned, -1 if none. step: int32 [], the index of
    the offending move (for GOAL_NOT_REACHED the plan's length), -1 if none. makespan, sum_of_costs: int32 [], of a
    valid plan; -1 otherwise. legal_steps: int32 [], joint moves before the first failure. at_goal: bool [K], which
    agents were on their goals when the plan ended or failed.
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

    status: int32 [], a `Status`. certificate: int32 [], a `Certificate`. makespan, sum_of_costs: int32 [], each the
    optimum of its own objective, -1 unless solvable. wait_required: bool []. moves: int8 [K, T], a plan that reaches
    sum_of_costs, padded with PAD; it is free of waits before final arrivals unless wait_required. makespan_moves: int8
    [K, T'], a plan that reaches makespan, where it was asked for, else None.
    """

    status: jax.Array
    certificate: jax.Array
    makespan: jax.Array
    sum_of_costs: jax.Array
    wait_required: jax.Array
    moves: jax.Array
    makespan_moves: jax.Array | None = None

    @property
    def solvable(self) -> jax.Array:
        """bool [], whether a plan is known."""
        return self.status == Status.SOLVABLE
