"""A board as a question, its certified answer, and the score of any other."""

from typing import Any

import msgspec

from lakewright.core_jax.rows import Row, VerdictRow
from lakewright.policy.codecs import encode_prompt, plan_text
from lakewright.policy.judging import judge_plans, read_plan
from lakewright.policy.tasks import Task, task_of

VALID, COST = 0.7, 0.3  # an answer that costs c beyond the optimum scores VALID + COST / (1 + c)


class TextTask(msgspec.Struct, frozen=True):
    """A board with its labels, as a question in words."""

    row: Row

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "TextTask":
        """The task of a row's fields, as JSON has them. Raises ValueError where they are no row."""
        return cls(msgspec.convert(fields, Row))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the row, as JSON has them, without what a benchmark adds."""
        whole = msgspec.to_builtins(self.row)
        return {name: whole[name] for name in Row.__struct_fields__}

    @property
    def question(self) -> str:
        """The prompt. Raises ValueError on more than eight agents."""
        return encode_prompt(self._task.board)

    @property
    def answer(self) -> str:
        """The certified plan, as a model would write it."""
        return plan_text(self._task.moves)

    def judge(self, answer: str) -> VerdictRow:
        """The verdict of the simulator on an answer, which is read strictly."""
        return judge_plans([self.row], [read_plan(answer, self.row.agents)])[0]

    @property
    def _task(self) -> Task:
        return task_of(self.row)


def score(row: Row, verdict: VerdictRow) -> float:
    """1 for a plan of optimal sum of costs, less for a valid one that costs more, 0 for anything else."""
    if not verdict.valid or verdict.sum_of_costs is None or row.sum_of_costs is None:
        return 0.0
    return VALID + COST / (1 + max(0, verdict.sum_of_costs - row.sum_of_costs))
