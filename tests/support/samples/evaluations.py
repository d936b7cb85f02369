"""Evaluations of a dozen boards, by an answerer that knows the certified plans."""

import math

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.core_jax.types import MOVES
from lakewright.experiments.boards.evaluation.answerers import AnswerRow
from lakewright.experiments.boards.evaluation.evaluator import EvaluationSettings, evaluate_on_benchmark
from lakewright.experiments.boards.evaluation.scores import Summary
from lakewright.policy.codecs.text_prompt import MOVE_WORDS
from tests.support.boards.generated_rows import small_rows
from tests.support.boards.sample_boards import drawing

WORDS = {MOVES[move]: word for move, word in MOVE_WORDS.items()}
ROWS = small_rows()[:12]


def write_plan(plan: list[str]) -> str:
    """A plan as a language model answers with it."""
    return "\n".join(f"agent {agent}: {' '.join(map(WORDS.get, moves))}" for agent, moves in enumerate(plan))


def board_of(row: Row):
    """The board of a row."""
    return drawing(row.grid, row.starts, row.goals)


class CertifiedAnswers:
    """Answers with the certified plan, except for the rows of some numbers; ends like a power cut after `most`."""

    name, identity, reads_text, spent = "certified", {"model": "certified"}, True, 0.0

    def __init__(self, wrong: dict[int, str] | None = None, most: float = math.inf) -> None:
        self.wrong, self.most = wrong or {}, most
        self.asked: list[tuple[str, int]] = []

    def answers(self, asked):
        numbers = {row.id: number for number, row in enumerate(ROWS)}
        for one in asked:
            if len(self.asked) == self.most:
                raise KeyboardInterrupt
            self.asked.append((one.row.id, one.sample))
            text = self.wrong.get(numbers[one.row.id], write_plan(one.row.plan))
            yield [AnswerRow(one.row.id, one.sample, text, None, 10, 5, "stop")]


def run_evaluation(benchmark, out, certified: CertifiedAnswers, **settings) -> Summary:
    """Evaluates what a certified answers."""
    return evaluate_on_benchmark(benchmark, out, lambda out: certified, EvaluationSettings(**settings))


class Unreachable(CertifiedAnswers):
    """A server that answers nothing."""

    def answers(self, asked):
        raise InputError("endpoint: cannot be reached")
