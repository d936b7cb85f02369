"""Verdicts on the answers of an evaluation: each is read as a plan and played by the simulator."""

from collections.abc import Sequence

import msgspec

from lakewright.core_jax.rows import Row, VerdictRow
from lakewright.experiments.evaluation.answerers import AnswerRow
from lakewright.policy.codecs import Refusal, Refused
from lakewright.policy.judging import judge_plans, read_plan


class JudgedRow(msgspec.Struct, frozen=True):
    """A line of verdicts.jsonl: the verdict on an answer, and if it is no plan the reason and the problem found."""

    sample: int
    verdict: VerdictRow
    refusal: str | None = None
    problem: str | None = msgspec.field(default=None, name="told")


def judged_rows(rows: Sequence[Row], answers: Sequence[AnswerRow]) -> list[JudgedRow]:
    """The verdict of the simulator on each answer to its row, a batch of one size and number of agents at once."""
    plans = [_read(row, answer) for row, answer in zip(rows, answers, strict=True)]
    return [
        JudgedRow(answer.sample, verdict, plan.reason, plan.problem)
        if isinstance(plan, Refused)
        else JudgedRow(answer.sample, verdict)
        for answer, plan, verdict in zip(answers, plans, judge_plans(rows, plans), strict=True)
    ]


def _read(row: Row, answer: AnswerRow) -> list[str] | Refused:
    if answer.text is None:
        return answer.plan or Refused(Refusal.NO_PLAN, "the tokens of the answer name no plan")
    return read_plan(answer.text, row.agents)
