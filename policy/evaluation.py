"""Evaluation of a model on certified boards: valid and optimal plans, and failures, by map size."""

from collections.abc import Callable, Sequence

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


def outcomes_by_size(
    tasks: Sequence[BoardTask], failure: np.ndarray, makespan: np.ndarray, sum_of_costs: np.ndarray
) -> dict[int, BoardOutcomes]:
    """The outcomes of a plan for each task per map size.

    Args:
        tasks: B tasks.
        failure, makespan, sum_of_costs: int [B], as in `BoardVerdict`.
    """
    sizes = np.array([task.size for task in tasks], int)
    optima = np.array([(task.makespan, task.sum_of_costs) for task in tasks], int).reshape(-1, 2)
    waits = np.array([task.wait_required for task in tasks], bool)
    failure, best = np.asarray(failure), np.stack([makespan, sum_of_costs], axis=1) == optima

    def count(rows: np.ndarray) -> BoardOutcomes:
        return BoardOutcomes.count(failure[rows], best[rows, 0], best[rows, 1], waits[rows])

    return {int(size): count(sizes == size) for size in np.unique(sizes)}
