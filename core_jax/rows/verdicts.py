"""Verdicts on plans for rows of mixed kinds, judged kind by kind."""

from collections.abc import Sequence

import jax
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.core_jax.lake.verification import horizon_of, verify
from lakewright.core_jax.rows.arrays import PLAN, boards_in, kinds_of, moves_in, plan_lengths
from lakewright.core_jax.rows.columns import by_kind, columns_of, places_by_kind, records_of, take_places, to_arrow
from lakewright.core_jax.rows.row import SCHEMA, Row
from lakewright.core_jax.types import FAILURE_NAMES, Board, BoardVerdict, Failure

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


class VerdictRow(msgspec.Struct, frozen=True):
    """The verdict on a plan: its first failure with agent and step (from 0), or its costs.

    optimal_makespan and optimal_sum_of_costs compare with the row's labels, null if missing.
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


def verify_columns(batch: pa.RecordBatch, plans: pa.ListArray) -> pa.RecordBatch:
    """The verdict on a plan for each row, in order, as columns of VERDICT_SCHEMA; no plan is null."""
    if not len(batch):
        return columns_of([], VERDICT_SCHEMA)

    def judge_kind(places: np.ndarray) -> pa.RecordBatch:
        some = take_places(batch, places)
        return _make_verdict_columns(
            some, _verify_plans(boards_in(some), plans if some is batch else plans.take(pa.array(places)))
        )

    return by_kind(kinds_of(batch), judge_kind)


def _verify_plans(boards: Board, plans: pa.ListArray) -> BoardVerdict:
    """Like `core_jax.lake.verify`, with plans of similar lengths together, so that one long plan lengthens no other."""
    known, place = np.unique(plan_lengths(plans), return_inverse=True)
    horizons = np.array([horizon_of(steps) for steps in known.tolist()])[place]
    groups = places_by_kind(horizons)
    if len(groups) == 1:
        return verify(boards, moves_in(plans, int(horizons[0])))
    found = []
    for places in groups:
        some = jax.tree.map(lambda field, places=places: field[places], boards)
        found.append(verify(some, moves_in(plans.take(pa.array(places)), int(horizons[places[0]]))))
    order = np.argsort(np.concatenate(groups))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[order], *found)


def verify_rows(rows: Sequence[Row], plans: Sequence[list[str]]) -> list[VerdictRow]:
    """Like `verify_columns`, for rows."""
    verdicts = verify_columns(columns_of(rows, SCHEMA), to_arrow(plans, PLAN))
    return [VerdictRow(**record) for record in records_of(verdicts)]


def _make_verdict_columns(batch: pa.RecordBatch, found: BoardVerdict) -> pa.RecordBatch:
    failure = np.asarray(found.failure)
    valid = failure == Failure.NONE

    def optimal(cost: np.ndarray, label: pa.Array) -> pa.Array:
        return pc.and_(pa.array(valid), pc.equal(pa.array(cost), label))

    columns = {
        "id": batch["id"],
        "valid": pa.array(valid),
        "failure": pa.array(FAILURE_NAMES).take(pa.array(failure)),
        "agent": pa.array(np.asarray(found.agent), mask=valid),
        "step": pa.array(np.asarray(found.step), mask=valid),
        "makespan": pa.array(np.asarray(found.makespan), mask=~valid),
        "sum_of_costs": pa.array(np.asarray(found.sum_of_costs), mask=~valid),
        "optimal_makespan": optimal(np.asarray(found.makespan), batch["makespan"]),
        "optimal_sum_of_costs": optimal(np.asarray(found.sum_of_costs), batch["sum_of_costs"]),
    }
    return pa.RecordBatch.from_pydict(columns, VERDICT_SCHEMA)
