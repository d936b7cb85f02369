"""Evaluation of a model on certified boards: valid and optimal plans, and failures by type, by map size."""

from collections.abc import Callable

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.results import Outcomes
from lakewright.core_jax.types import Verdict
from lakewright.policy.codecs import Codec, TokensCodec
from lakewright.policy.inference import answer_tasks
from lakewright.policy.tasks import Task
from lakewright.policy.training import judge_answers


def evaluate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    tasks: list[Task],
    *,
    horizon: int,
    temperature: float = 0.0,
    codec: Codec | None = None,
    on_progress: Callable[[int], None] = lambda boards: None,
    on_answers: Callable[[list[list[int]]], object] = lambda answers: None,
) -> tuple[Verdict, np.ndarray]:
    """Lets the model answer every task (greedily at temperature 0): the verdicts [B] and plans int8 [B, K, horizon].

    codec: the one of the model, by default tokens. on_answers: gets the answers themselves, token ids.
    """
    codec = codec or TokensCodec(tokenizer)
    answers = answer_tasks(
        model,
        tokenizer,
        tasks,
        max_new_tokens=max(codec.answer_length(horizon, len(task.board.starts)) for task in tasks),
        temperature=temperature,
        batch=codec.batch,
        codec=codec,
        on_progress=on_progress,
    )
    on_answers(answers)
    return judge_answers(tasks, answers, horizon, codec)


def outcomes_by_size(tasks: list[Task], verdicts: Verdict) -> dict[int, Outcomes]:
    """The outcomes of verdicts [B] per map size."""
    sizes = np.array([task.size for task in tasks])
    return {int(size): _outcomes(tasks, verdicts, np.flatnonzero(sizes == size)) for size in np.unique(sizes)}


def _outcomes(tasks: list[Task], verdicts: Verdict, rows: np.ndarray) -> Outcomes:
    makespan = np.array([tasks[row].makespan for row in rows])
    sum_of_costs = np.array([tasks[row].sum_of_costs for row in rows])
    return Outcomes.count(
        failure=np.asarray(verdicts.failure)[rows],
        optimal_makespan=np.asarray(verdicts.makespan)[rows] == makespan,
        optimal_sum_of_costs=np.asarray(verdicts.sum_of_costs)[rows] == sum_of_costs,
        waits=np.array([tasks[row].wait_required for row in rows]),
    )
