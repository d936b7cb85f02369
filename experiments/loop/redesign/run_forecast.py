"""The difficulty model of a run: fitted after each stage to all groups that its policies rolled out."""

from collections.abc import Iterator

import msgspec

from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty import Forecast, Observation, make_forecast, observe_groups, observe_held_out
from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.guard import GuardSettings, widen_reach
from lakewright.engineer.steps import count_held_out
from lakewright.engineer.trial import CellTrial, Trial
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_held_out, read_rollouts
from lakewright.experiments.loop.settings.run_settings import RunSettings


def fit_forecast(settings: RunSettings, environment: Environment, folder: RunFolder, number: int) -> Forecast:
    """The forecast after stage `number`, from the groups of its training and of all before, trials included.

    With `difficulty.held_out`, the answers to the held-out problems are included, from the warm-up on.

    Args:
        settings, environment, folder: of the run.
    """
    design = folder.stage(number).design()
    found = [seen for past in range(number + 1) for seen in _observe_training(folder.stage(past), number - past)]
    found += [seen for past in range(-1, number) for seen in _observe_trial(folder.stage(past), number - past)]
    before = read_forecast(folder.stage(number - 1)) if number >= 0 else None
    how = msgspec.structs.replace(settings.difficulty, objective=settings.objective)
    held_out = read_held_out(folder)
    first = number < 0  # no other answers exist yet
    tested = list(_observe_tests(folder, number, held_out)) if settings.difficulty.held_out or first else []
    cells = count_held_out((problem.cell for problem in held_out), design)
    return make_forecast(design, found, cells, how, environment.space, before, tested)


def _observe_training(stage: Stage, age: int) -> list[Observation]:
    return observe_groups(((problem.cell, group) for problem, group in read_rollouts(stage)), age)


def _observe_tests(folder: RunFolder, number: int, held_out: list[Problem]) -> Iterator[Observation]:
    """The answers to the held-out problems after the warm-up and each stage."""
    for past in range(-1, number + 1):
        valid = read_record(folder.stage(past).validation, Validation).valid
        answers: Iterator[tuple[Cell, bool]] = (
            (problem.cell, digit == "1") for problem, digit in zip(held_out, valid, strict=True)
        )
        yield from observe_held_out(answers, number - past)


def _observe_trial(stage: Stage, age: int) -> list[Observation]:
    """The groups of the trial after a stage, if one was held; its policy is that of the stage to come, untrained."""
    trial = read_record(stage.trial, Trial) if stage.trial.exists() else None
    return [_observe_cell(part, age) for part in trial.cells] if trial else []


def _observe_cell(part: CellTrial, age: int) -> Observation:
    return Observation(part.cell, len(part.valid), sum(part.valid) / part.answers, sum(part.variances()), age)


def read_forecast(stage: Stage) -> Forecast | None:
    """The forecast after a stage; None in folders of older versions."""
    return read_record(stage.difficulty, Forecast) if stage.difficulty.exists() else None


def find_trust_region(settings: RunSettings, environment: Environment, stage: Stage) -> GuardSettings:
    """The guard's settings after a stage, as wide as the difficulty model is certain."""
    known = read_forecast(stage)
    return widen_reach(settings.limits, environment.space, known.certainty) if known else settings.limits
