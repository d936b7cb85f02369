"""A finished run on sums with all of its records: answers, tokens, trials and forecasts; nothing is trained."""

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import write_atomically
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import DifficultySettings, Forecast, make_forecast, observe_groups
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem
from lakewright.engineer.trial import TrialSettings, TrialWork, try_beside_current
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Done, read_record, write_record
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts, write_problems
from lakewright.experiments.loop.settings.run_settings import RunSettings
from tests.support.samples.finished_text_run import ADDITION, LATER, ROWS, WRONG, redesign_text, validate_text

HELD_OUT, STAGES = 60, 2
SECONDS = 75.0


def environment() -> Environment:
    """Sums."""
    return load_environment(f"{ADDITION}:Addition")


def settings(**changes: object) -> RunSettings:
    """Of runs on sums."""
    return RunSettings(environment=f"{ADDITION}:Addition", codec="bytes", stages=STAGES, teacher="rules", **changes)  # type: ignore[arg-type]


def record_run(run: RunFolder, how: RunSettings, valid: Sequence[int], seed: int = 0) -> RunFolder:
    """Writes a finished run. how: its settings. valid: of the held-out answers, after the warm-up and each stage."""
    sums, rng = environment(), random.Random(seed)
    run.open(how)
    held_out = sums.draw(Design({2: dict(ROWS[2]), 3: dict(ROWS[3])}), HELD_OUT, seed=2)  # none comes twice
    random.Random(5).shuffle(held_out)  # so that the first of them are of all kinds in unequal numbers
    write_problems(run.held_out, held_out)
    validate_text(run.warmup, sums, held_out, valid[0], WRONG)
    for number, count in enumerate(valid[1:]):
        stage = run.stage(number)
        redesign_text(stage, sums, WRONG, number)
        validate_text(stage, sums, held_out, count, WRONG)
        stage.checkpoint.mkdir()
        steps = [{"step": n, "reward": 0.5, "valid": 0.5, "sampled/tokens": float(rng.randint(20, 60))} for n in (1, 2)]
        write_atomically(stage.train_log, msgspec.json.Encoder().encode_lines(steps))
        write_record(stage.done, Done(SECONDS, {}))
        _try_later(run, number, sums, rng)
    if len(valid) > STAGES:
        _forecast_again(run, sums)
    return run


def begin(path: Path) -> RunFolder:
    """A run whose policy becomes better and then worse."""
    return record_run(RunFolder(path), settings(), (12, 47, 29))


def _try_later(run: RunFolder, number: int, sums: Environment, rng: random.Random) -> None:
    """Writes the trial of a stage, in which about every other answer is valid, of longer sums fewer."""

    def roll_out(problems: Sequence[Problem], samples: int, turn: int) -> tuple[list[RolloutGroup], int]:
        chances = [0.5 / (1 + problem.prompt.count("+")) for problem in problems]
        valid = [[rng.random() < chance for _ in range(samples)] for chance in chances]
        groups = [
            RolloutGroup.of(problem.key, one, [float(v) for v in one])
            for problem, one in zip(problems, valid, strict=True)
        ]
        return groups, 3 * samples * len(problems)

    work = TrialWork(sums, roll_out, TrialSettings(share=0, boards=40), "learnability", seed=number)
    later = Design({stratum: dict(row) for stratum, row in LATER.items()})
    write_record(run.stage(number).trial, try_beside_current(work, run.stage(number).design(), [later]), lake=False)


def _forecast_again(run: RunFolder, sums: Environment) -> None:
    """Writes the last stage's forecast once more, with how good the one before it was."""
    before, last = run.stage(STAGES - 2), run.stage(STAGES - 1)
    seen = observe_groups((problem.cell, group) for problem, group in read_rollouts(last))
    known = read_record(before.difficulty, Forecast)
    forecast = make_forecast(last.design(), seen, [], DifficultySettings(), sums.space, known)
    write_record(last.difficulty, forecast, lake=False)
