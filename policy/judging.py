"""Verdicts on plans by the simulator, and the best of several plans for one board.

Unlike `planning` it loads no model library, which judges of texts do not need.
"""

from collections.abc import Sequence

from lakewright.core_jax.rows import Row, VerdictRow, plan_of, verify_rows
from lakewright.core_jax.terms import FAILURE_NAMES, Failure
from lakewright.policy.codecs.text_answer import Refused, parse_answer


def read_plan(text: str, agents: int) -> list[str] | Refused:
    """Return the plan that an answer names, a string of moves for each agent, or why it is refused."""
    moves = parse_answer(text, agents)
    return moves if isinstance(moves, Refused) else plan_of(moves)


def judge_plans(rows: Sequence[Row], plans: Sequence[list[str] | Refused]) -> list[VerdictRow]:
    """Return the simulator's verdict on a plan for each row; a refused answer is a parse error."""
    readable = [(row, plan) for row, plan in zip(rows, plans, strict=True) if not isinstance(plan, Refused)]
    verdicts = iter(verify_rows([row for row, _ in readable], [plan for _, plan in readable]))
    return [
        _refuse_plan(row) if isinstance(plan, Refused) else next(verdicts)
        for row, plan in zip(rows, plans, strict=True)
    ]


def best_valid(verdicts: Sequence[VerdictRow]) -> int | None:
    """Return the index of the valid plan with least sum of costs, then makespan, then index; None if all fail."""
    valid = [
        (found.sum_of_costs, found.makespan, place)
        for place, found in enumerate(verdicts)
        if found.valid and found.sum_of_costs is not None and found.makespan is not None
    ]
    return min(valid)[2] if valid else None


def _refuse_plan(row: Row) -> VerdictRow:
    """Return the verdict on an answer that holds no plan."""
    optimal = [None if label is None else False for label in (row.makespan, row.sum_of_costs)]
    return VerdictRow(row.id, False, FAILURE_NAMES[Failure.PARSE_ERROR], None, None, None, None, *optimal)
