"""Validation: greedy plans for the held-out set, how many are valid and optimal, and some of them to look at."""

import jax
import numpy as np

from core_jax.rows import Row, plan_of
from core_jax.types import FAILURE_NAMES, Failure, Verdict
from experiments.loop.records import Example, Stage, Validation, write
from experiments.loop.settings import RunSettings
from experiments.loop.training.policies import load_policy
from experiments.runtime import progress
from policy.codecs import codec_for
from policy.evaluation import evaluate, outcomes_by_size
from policy.tasks import Task, task_of

EXAMPLES = 6  # boards kept to look at, of each kind: valid plans on boards that force a wait, and failures


def validate(settings: RunSettings, stage: Stage, held_out: list[Row]) -> None:
    """Validates the policy of a stage."""
    tasks = [task_of(row) for row in held_out]
    verdicts, plans = _answered(settings, stage, tasks)
    forced = np.flatnonzero([task.wait_required for task in tasks])
    of_forced = jax.tree.map(lambda field: np.asarray(field)[forced], verdicts)
    valid = "".join("01"[int(failure == Failure.NONE)] for failure in np.asarray(verdicts.failure))
    record = Validation(
        sizes=outcomes_by_size(tasks, verdicts),
        examples=_examples(held_out, verdicts, plans),
        forced=outcomes_by_size([tasks[i] for i in forced], of_forced),
        valid=valid,
    )
    write(stage.validation, record)


def _answered(settings: RunSettings, stage: Stage, tasks: list[Task]) -> tuple[Verdict, np.ndarray]:
    model, tokenizer = load_policy(settings, stage.checkpoint)
    codec = codec_for(settings.codec, tokenizer, settings.text)
    with progress("validation", len(tasks), "boards") as bar:
        return evaluate(model, tokenizer, tasks, horizon=settings.horizon, codec=codec, on_progress=bar.update)


def _examples(rows: list[Row], verdicts: Verdict, plans: np.ndarray) -> list[Example]:
    """Valid plans on boards that force a wait, and failures, each kind spread evenly over the set."""
    failure = np.asarray(verdicts.failure)
    forced = np.array([row.wait_required for row in rows])
    valid = np.flatnonzero((failure == Failure.NONE) & forced)
    failed = np.flatnonzero(failure > Failure.PARSE_ERROR)
    return [
        _example(rows[i], plans[i], failure[i], int(verdicts.agent[i]), int(verdicts.step[i]))
        for i in [*_spread(valid), *_spread(failed)]
    ]


def _spread(places: np.ndarray) -> np.ndarray:
    """At most EXAMPLES of `places`, evenly over their range."""
    return places[np.linspace(0, len(places) - 1, min(EXAMPLES, len(places))).astype(int)]


def _example(row: Row, plan: np.ndarray, failure: int, agent: int, step: int) -> Example:
    return Example(row, plan_of(plan[: row.agents]), FAILURE_NAMES[failure], agent, step)
