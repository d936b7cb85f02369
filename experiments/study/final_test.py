"""The test of a study: greedy plans of each run's last policy on boards that no decision of a run has seen."""

from pathlib import Path

import jax
import msgspec
import numpy as np

from core_jax.rows import Row
from core_jax.types import Failure
from experiments.loop.records import Stage, Validation, write
from experiments.loop.settings import RunSettings, ValidationSettings
from experiments.loop.training import held_out_set, load_policy
from experiments.runtime import progress
from policy.codecs import codec_for
from policy.evaluation import evaluate, outcomes_by_size
from policy.tasks import task_of


def final_boards(settings: RunSettings, chosen: ValidationSettings, path: Path) -> list[Row]:
    """The boards of the test, drawn once and kept at `path`."""
    return held_out_set(msgspec.structs.replace(settings, validation=chosen), path)


def take_final_test(settings: RunSettings, policy: Stage, boards: list[Row], path: Path) -> None:
    """Keeps at `path` how the policy of a stage does on the boards, unless that is there."""
    if path.exists():
        return
    tasks = [task_of(row) for row in boards]
    model, tokenizer = load_policy(settings, policy.checkpoint)
    codec = codec_for(settings.codec, tokenizer, settings.text)
    with progress("test", len(tasks), "boards") as bar:
        verdicts, _ = evaluate(model, tokenizer, tasks, horizon=settings.horizon, codec=codec, on_progress=bar.update)
    forced = np.flatnonzero([task.wait_required for task in tasks])
    of_forced = jax.tree.map(lambda field: np.asarray(field)[forced], verdicts)
    solved = np.asarray(verdicts.failure) == Failure.NONE
    sizes, waits = outcomes_by_size(tasks, verdicts), outcomes_by_size([tasks[place] for place in forced], of_forced)
    write(path, Validation(sizes, [], waits, "".join("01"[int(valid)] for valid in solved)))
