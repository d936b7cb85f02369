"""Verdicts on the answers of an evaluation: each is read as a plan and played by the simulator."""

from collections.abc import Sequence

import msgspec

from core_jax.rows import Row, VerdictRow, plan_of, verify_rows
from core_jax.types import FAILURE_NAMES, Failure
from experiments.evaluation.answerers import AnswerRow
from policy.codecs import Refusal, Refused, parse_answer


class JudgedRow(msgspec.Struct, frozen=True):
    """A line of verdicts.jsonl: the verdict on an answer; of one that is no plan, why not."""

    sample: int
    verdict: VerdictRow
    refusal: str | None = None
    told: str | None = None


def judged_rows(rows: Sequence[Row], answers: Sequence[AnswerRow]) -> list[JudgedRow]:
    """The verdict of the simulator on each answer to its row, a batch of one size and number of agents at once."""
    plans: list[list[str]] = []
    readable: list[int] = []
    judged: dict[int, JudgedRow] = {}
    for place, (row, answer) in enumerate(zip(rows, answers, strict=True)):
        plan = _read(row, answer)
        if isinstance(plan, Refused):
            judged[place] = JudgedRow(answer.sample, _unread(row), plan.reason, plan.told)
        else:
            plans.append(plan)
            readable.append(place)
    verdicts = verify_rows([rows[place] for place in readable], plans)
    for place, verdict in zip(readable, verdicts, strict=True):
        judged[place] = JudgedRow(answers[place].sample, verdict)
    return [judged[place] for place in range(len(answers))]


def _read(row: Row, answer: AnswerRow) -> list[str] | Refused:
    if answer.text is None:
        return answer.plan or Refused(Refusal.NO_PLAN, "the tokens of the answer name no plan")
    moves = parse_answer(answer.text, row.agents)
    return moves if isinstance(moves, Refused) else plan_of(moves)


def _unread(row: Row) -> VerdictRow:
    """The verdict on an answer that is no plan."""
    optimal = [None if label is None else False for label in (row.makespan, row.sum_of_costs)]
    return VerdictRow(row.id, False, FAILURE_NAMES[Failure.PARSE_ERROR], None, None, None, None, *optimal)
