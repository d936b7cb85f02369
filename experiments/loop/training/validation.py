"""Validation: greedy plans for the held-out set, how many are valid and optimal, and some of them to look at."""

from collections.abc import Callable

import jax
import msgspec
import numpy as np

from lakewright.core_jax.rows import Row, board_key
from lakewright.core_jax.types import FAILURE_NAMES, Failure, Verdict
from lakewright.experiments.loop.records import Answer, BoardAnswers, Example, Stage, Validation, write, write_answers
from lakewright.experiments.loop.settings import RunSettings
from lakewright.experiments.loop.training.policies import load_policy
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import Codec, codec_for
from lakewright.policy.evaluation import evaluate, outcomes_by_size
from lakewright.policy.tasks import Task, task_of

EXAMPLES = 6  # boards kept to look at, of each kind: valid plans on boards that force a wait, and failures
VALID, UNREAD = FAILURE_NAMES[Failure.NONE], FAILURE_NAMES[Failure.PARSE_ERROR]


def validate(settings: RunSettings, stage: Stage, held_out: list[Row]) -> None:
    """Validates the policy of a stage."""
    texts: list[str] = []
    record, verdicts, plans = measure(settings, stage, held_out, "validation", texts.extend)
    answers = [
        _answer(row, plan, verdicts, place, text)
        for place, (row, plan, text) in enumerate(zip(held_out, plans, texts, strict=True))
    ]
    kept = [BoardAnswers(board_key(row), [answer]) for row, answer in zip(held_out, answers, strict=True)]
    write_answers(stage.plans, kept)
    write(stage.validation, msgspec.structs.replace(record, examples=_examples(held_out, answers)))


def measure(
    settings: RunSettings,
    stage: Stage,
    boards: list[Row],
    label: str,
    on_texts: Callable[[list[str]], object] = lambda texts: None,
) -> tuple[Validation, Verdict, np.ndarray]:
    """Greedy plans of a stage's policy for some boards: the record without examples, verdicts [B], plans [B, K, T].

    label: what the progress bar is called. on_texts: gets what was said to each board, nothing in tokens.
    """
    tasks = [task_of(row) for row in boards]
    model, tokenizer = load_policy(settings, stage.checkpoint)
    codec = codec_for(settings.codec, tokenizer, settings.text)
    with progress(label, len(tasks), "boards") as bar:
        verdicts, plans = evaluate(
            model,
            BoardPlay(codec, settings.horizon, settings.reward),
            tasks,
            on_progress=bar.update,
            on_answers=lambda found: on_texts(_texts(codec, tasks, found)),
        )
    verdicts = jax.tree.map(np.asarray, verdicts)
    return _record(tasks, verdicts), verdicts, plans


def _texts(codec: Codec, tasks: list[Task], answers: list[list[int]]) -> list[str]:
    prompts = (codec.encode_prompt(task.board) for task in tasks)
    return [codec.words(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]


def _record(tasks: list[Task], verdicts: Verdict) -> Validation:
    forced = np.flatnonzero([task.wait_required for task in tasks])
    of_forced = jax.tree.map(lambda field: field[forced], verdicts)
    return Validation(
        sizes=outcomes_by_size(tasks, verdicts),
        examples=[],
        forced=outcomes_by_size([tasks[place] for place in forced], of_forced),
        valid="".join("01"[int(failure == Failure.NONE)] for failure in verdicts.failure),
    )


def _answer(row: Row, plan: np.ndarray, verdicts: Verdict, place: int, text: str) -> Answer:
    failure, agent, step = (int(field[place]) for field in (verdicts.failure, verdicts.agent, verdicts.step))
    return Answer.of(plan[: row.agents], failure, agent, step, text)


def _examples(rows: list[Row], answers: list[Answer]) -> list[Example]:
    """Valid plans on boards that force a wait, and failures, each kind spread evenly over the set."""
    both = list(zip(rows, answers, strict=True))
    valid = [one for one in both if one[1].failure == VALID and one[0].wait_required]
    failed = [one for one in both if one[1].failure not in (VALID, UNREAD)]
    return [
        Example(row, found.plan, found.failure, found.agent, found.step)
        for row, found in [*_spread(valid), *_spread(failed)]
    ]


def _spread(found: list[tuple[Row, Answer]]) -> list[tuple[Row, Answer]]:
    """At most EXAMPLES of them, evenly over their range."""
    return [found[int(place)] for place in np.linspace(0, len(found) - 1, min(EXAMPLES, len(found)))]
