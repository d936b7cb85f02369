"""Evaluation of a model on certified boards: valid and optimal plans, and failures, by map size."""

from collections.abc import Callable

import numpy as np
from transformers import PreTrainedModel

from lakewright.core_jax.results import BoardOutcomes
from lakewright.core_jax.types import BoardVerdict
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.inference.answers import AnswerSampler, answer_tasks
from lakewright.policy.tasks import BoardTask


def evaluate(
    policy: PreTrainedModel | AnswerSampler,
    play: BoardPlay,
    tasks: list[BoardTask],
    *,
    temperature: float = 0.0,
    on_progress: Callable[[int], None] = lambda boards: None,
) -> tuple[BoardVerdict, np.ndarray]:
    """Return the verdicts [B] and the plans int8 [B, K, horizon] of a policy that answers every task.

    Args:
        policy, play, tasks: see `answer_tasks`.
        temperature: sampling temperature; 0 is greedy.
        on_progress: gets how many more tasks are answered.

    Tasks of any other kind are answered and judged by `lakewright.policy.training.answer_groups`.
    """
    return play.judge_plans(tasks, answer_tasks(policy, play, tasks, temperature=temperature, on_progress=on_progress))


def outcomes_by_size(tasks: list[BoardTask], verdicts: BoardVerdict) -> dict[int, BoardOutcomes]:
    """The outcomes of verdicts [B] per map size."""
    sizes = np.array([task.size for task in tasks])
    return {int(size): _count_outcomes(tasks, verdicts, np.flatnonzero(sizes == size)) for size in np.unique(sizes)}


def _count_outcomes(tasks: list[BoardTask], verdicts: BoardVerdict, rows: np.ndarray) -> BoardOutcomes:
    makespan = np.array([tasks[row].makespan for row in rows])
    sum_of_costs = np.array([tasks[row].sum_of_costs for row in rows])
    return BoardOutcomes.count(
        failure=np.asarray(verdicts.failure)[rows],
        optimal_makespan=np.asarray(verdicts.makespan)[rows] == makespan,
        optimal_sum_of_costs=np.asarray(verdicts.sum_of_costs)[rows] == sum_of_costs,
        waits=np.array([tasks[row].wait_required for row in rows]),
    )
