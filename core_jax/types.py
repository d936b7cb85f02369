"""The arrays of the lake, and with them its terms (`lakewright.core_jax.terms`).

Shape letters, used in every docstring: B boards, K agents, n the side of a board, T steps of a plan, N = n (n + 1)
padded cells of a bitboard, W words of 32 boards.
"""

import flax.struct
import jax

from lakewright.core_jax.terms import CERTIFICATE_NAMES as CERTIFICATE_NAMES
from lakewright.core_jax.terms import DELTAS as DELTAS
from lakewright.core_jax.terms import DOWN as DOWN
from lakewright.core_jax.terms import FAILURE_NAMES as FAILURE_NAMES
from lakewright.core_jax.terms import JUMP as JUMP
from lakewright.core_jax.terms import LEFT as LEFT
from lakewright.core_jax.terms import LETTERS as LETTERS
from lakewright.core_jax.terms import MOVES as MOVES
from lakewright.core_jax.terms import OPPOSITE as OPPOSITE
from lakewright.core_jax.terms import PAD as PAD
from lakewright.core_jax.terms import RIGHT as RIGHT
from lakewright.core_jax.terms import STATUS_NAMES as STATUS_NAMES
from lakewright.core_jax.terms import UP as UP
from lakewright.core_jax.terms import WAIT as WAIT
from lakewright.core_jax.terms import Certificate as Certificate
from lakewright.core_jax.terms import Failure as Failure
from lakewright.core_jax.terms import Status as Status


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
class BoardVerdict:
    """The verdict on a plan.

    failure: int32 [], a `Failure`. agent: int32 [], the first agent concerned, -1 if there isn't one. step: int32 [],
    the index of the offending move (for GOAL_NOT_REACHED the plan's length), -1 if there isn't one. makespan,
    sum_of_costs: int32 [], of a valid plan; -1 otherwise. legal_steps: int32 [], joint moves before the first failure.
    at_goal: bool [K], which agents were on their goals when the plan ended or failed.
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
    [K, T'], a plan that reaches makespan, if it was asked for, else None.
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
