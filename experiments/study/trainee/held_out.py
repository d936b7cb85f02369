"""The held-out boards of the study of the trainee: `natural` ones, drawn uniformly, and `forced` ones, which wait."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.generator import draw_free, generate
from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import Board, Status
from lakewright.experiments.loop.settings import RunSettings, seed_for

if TYPE_CHECKING:
    from lakewright.policy.tasks import Task

KINDS = ("natural", "forced")
EVALUATION_SEED = 20261121


def held_out_tasks(kind: str, run: RunSettings, count: int) -> list["Task"]:
    """`count` boards of a kind for every size and hole ratio of a run's settings, none of them in a training set."""
    from lakewright.policy.training import tasks_of

    tasks: list[Task] = []
    for size in run.env.sizes:
        for hole_ratio in run.validation.hole_ratios:
            seed = seed_for(EVALUATION_SEED, f"{kind} {size} {hole_ratio}")
            if kind == "natural":
                tasks += _natural(size, run.env.agents, hole_ratio, count, seed)
            else:
                config = EnvConfig.single(size, run.env.agents, hole_ratio, 1.0)
                tasks += tasks_of(generate(config, seed, count))
    return tasks


def _natural(size: int, agents: int, hole_ratio: float, count: int, seed: int) -> list["Task"]:
    """Solvable boards whose holes, starts and goals are drawn uniformly."""
    from lakewright.policy.tasks import Task

    tasks: list[Task] = []
    holes = holes_of(size, agents, hole_ratio)
    for first in itertools.count(0, 2 * count):
        boards = draw_free(size, agents, holes, seed, first, 2 * count)
        labels = solve(boards)
        for row in np.flatnonzero(np.asarray(labels.status) == Status.SOLVABLE):
            board = Board(boards.holes[row], boards.starts[row], boards.goals[row])
            optima = (int(labels.makespan[row]), int(labels.sum_of_costs[row]), bool(labels.wait_required[row]))
            tasks.append(Task(board, *optima, np.asarray(labels.moves[row]), hole_ratio))
        if len(tasks) >= count:
            break
    return tasks[:count]
