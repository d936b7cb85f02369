"""Labels and verdicts for rows of mixed sizes and numbers of agents, grouped so that like boards make one batch."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from core_jax.lake import horizon_of, verify
from core_jax.rows.formats import Row, boards_of, labelled, moves_of
from core_jax.solver import check_memory, solve
from core_jax.types import FAILURE_NAMES, Failure, Verdict

A = TypeVar("A")
B = TypeVar("B")


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


def check_solvable_here(row: Row) -> None:
    """Raises ValueError on a row that the exact solver does not handle."""
    check_memory(row.size, row.agents)


def solve_rows(
    rows: Sequence[Row], makespan_plans: bool = False, on_progress: Callable[[int], None] = lambda boards: None
) -> list[Row]:
    """The rows with certified labels, in order; each passes `check_solvable_here`.

    makespan_plans: also a plan that reaches the makespan.
    """

    def solved(group: list[Row]) -> list[Row]:
        done = labelled(group, solve(boards_of(group), makespan_plans))
        on_progress(len(group))
        return done

    return _by_kind(rows, [(row.size, row.agents) for row in rows], solved)


def verify_rows(rows: Sequence[Row], plans: Sequence[list[str]]) -> list[VerdictRow]:
    """The verdict on a plan for each row, in order."""
    horizons = [horizon_of(max(map(len, plan))) for plan in plans]
    kinds = [(row.size, row.agents, horizon) for row, horizon in zip(rows, horizons, strict=True)]

    def judged(group: list[tuple[Row, list[str], int]]) -> list[VerdictRow]:
        of, given, _ = zip(*group, strict=True)
        return _verdict_rows(of, verify(boards_of(of), moves_of(given, group[0][2])))

    return _by_kind(list(zip(rows, plans, horizons, strict=True)), kinds, judged)


def _verdict_rows(rows: Sequence[Row], found: Verdict) -> list[VerdictRow]:
    fields = (found.failure, found.agent, found.step, found.makespan, found.sum_of_costs)
    numbers = (np.asarray(field).tolist() for field in fields)
    return [_verdict_row(*row) for row in zip(rows, *numbers, strict=True)]


def _verdict_row(row: Row, failure: int, agent: int, step: int, makespan: int, cost: int) -> VerdictRow:
    valid = failure == Failure.NONE
    return VerdictRow(
        id=row.id,
        valid=valid,
        failure=FAILURE_NAMES[failure],
        agent=None if valid else agent,
        step=None if valid else step,
        makespan=makespan if valid else None,
        sum_of_costs=cost if valid else None,
        optimal_makespan=None if row.makespan is None else valid and makespan == row.makespan,
        optimal_sum_of_costs=None if row.sum_of_costs is None else valid and cost == row.sum_of_costs,
    )


def _by_kind(items: Sequence[A], kinds: Sequence[Hashable], function: Callable[[list[A]], list[B]]) -> list[B]:
    """`function` of each group of items of one kind; what it gives for every item, in the order of the items."""
    places = defaultdict(list)
    for place, kind in enumerate(kinds):
        places[kind].append(place)
    done: dict[int, B] = {}
    for group in places.values():
        done.update(zip(group, function([items[place] for place in group]), strict=True))
    return [done[place] for place in range(len(items))]
