"""Labels and verdicts for rows of mixed sizes and numbers of agents, grouped so that like boards make one batch."""

from collections import defaultdict
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pyarrow as pa

from core_jax.dynamics import verdict
from core_jax.formats import Row, boards_of, labelled, moves_of
from core_jax.solver import solve
from core_jax.types import FAILURE_NAMES, Failure


class VerdictRow(msgspec.Struct, frozen=True):
    """What became of a plan: its first failure with agent and step (from 0), or its costs.

    optimal_makespan and optimal_sum_of_costs compare with the row's labels, null where it has none.
    """

    id: str
    valid: bool
    failure: str
    agent: int | None
    step: int | None
    makespan: int | None
    sum_of_costs: int | None
    optimal_makespan: bool | None
    optimal_sum_of_costs: bool | None


VERDICT_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("valid", pa.bool_()),
        ("failure", pa.string()),
        ("agent", pa.int32()),
        ("step", pa.int32()),
        ("makespan", pa.int32()),
        ("sum_of_costs", pa.int32()),
        ("optimal_makespan", pa.bool_()),
        ("optimal_sum_of_costs", pa.bool_()),
    ]
)
# Plans judged at once: at most so many, and fewer where they are very long.
BLOCK_ROWS, BLOCK_STEPS = 4096, 1 << 20


def check_solvable_here(row: Row) -> None:
    """Raises ValueError on a row that the exact solver does not handle."""
    if row.agents != 2:
        raise ValueError(f"agents is {row.agents}: only boards of 2 agents are solved; leave the row out")


def solve_rows(rows: list[Row], on_progress: Callable[[int], None] = lambda boards: None) -> list[Row]:
    """The rows with certified labels, in order; each passes `check_solvable_here`."""
    done: list[Row] = list(rows)
    for places in _alike(rows):
        group = [rows[place] for place in places]
        labels = solve(boards_of(group))
        for i, place in enumerate(places):
            done[place] = labelled(rows[place], labels, i)
        on_progress(len(places))
    return done


def verify_rows(rows: list[Row], plans: list[list[str]]) -> list[VerdictRow]:
    """The verdict on a plan for each row, in order."""
    done: list[VerdictRow | None] = [None] * len(rows)
    longest = max((len(letters) for plan in plans for letters in plan), default=0)
    horizon = 1 << max(4, longest.bit_length())  # few lengths, each compiled once
    block = max(1, min(BLOCK_ROWS, BLOCK_STEPS // horizon))
    for places in _alike(rows):
        for begin in range(0, len(places), block):
            some = places[begin : begin + block]
            filled = some + some[-1:] * (block - len(some))
            boards = jax.tree.map(jnp.asarray, boards_of([rows[place] for place in filled]))
            moves = moves_of([plans[place] for place in filled], horizon)
            found = jax.tree.map(np.asarray, _verdicts(boards, jnp.asarray(moves)))
            for i, place in enumerate(some):
                done[place] = _verdict_row(rows[place], jax.tree.map(lambda field, i=i: field[i], found))
    return [row for row in done if row is not None]


_verdicts = jax.jit(jax.vmap(verdict))


def _verdict_row(row: Row, found) -> VerdictRow:
    valid = int(found.failure) == Failure.NONE
    makespan, cost = (int(found.makespan), int(found.sum_of_costs)) if valid else (None, None)
    return VerdictRow(
        id=row.id,
        valid=valid,
        failure=FAILURE_NAMES[int(found.failure)],
        agent=None if valid else int(found.agent),
        step=None if valid else int(found.step),
        makespan=makespan,
        sum_of_costs=cost,
        optimal_makespan=None if row.makespan is None else makespan == row.makespan,
        optimal_sum_of_costs=None if row.sum_of_costs is None else cost == row.sum_of_costs,
    )


def _alike(rows: list[Row]) -> Iterator[list[int]]:
    """The places of rows of equal size and number of agents."""
    places = defaultdict(list)
    for place, row in enumerate(rows):
        places[row.size, row.agents].append(place)
    yield from places.values()
