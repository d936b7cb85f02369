"""The `Engineer` of a run after a stage, whose steps the loop takes one at a time, and its forecast."""

from collections.abc import Callable, Sequence

import msgspec

from lakewright.engineer.difficulty import Forecast, Observation, observe_groups, observe_held_out
from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.proposal import Teacher
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.steps import EngineerSettings
from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Validation, find_record, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_held_out, read_rollouts
from lakewright.experiments.loop.settings.run_settings import RunSettings


def make_engineer(
    settings: RunSettings,
    environment: Environment,
    stage: Stage,
    teacher: str | Teacher = "fixed",
    held_out: Sequence[Problem] | None = None,
) -> Engineer:
    """The engineer of a run, with the design of a stage.

    Args:
        settings, environment, stage: of the run.
        teacher: proposes; for steps without a proposal any will do.
        held_out: what the policy is judged on, where a forecast is fitted.
    """
    how = EngineerSettings(
        evidence=settings.evidence,
        difficulty=msgspec.structs.replace(settings.difficulty, objective=settings.objective),
        guard=settings.limits,
        trial=settings.trial,
        rollback=settings.rollback,
        proposals=settings.engineer.proposals,
    )
    return Engineer(environment, teacher, stage.design(), held_out=held_out, settings=how)


def fit_forecast(settings: RunSettings, environment: Environment, folder: RunFolder, number: int) -> Forecast:
    """The forecast after stage `number`, from the groups of its training and of all before, trials included, and from
    the answers to the held-out problems, from the warm-up on.

    Args:
        settings, environment, folder: of the run.
    """
    held_out = read_held_out(folder)

    def observe(begin: int, end: int, list_groups: Callable[[Stage, int], list[Observation]]) -> list[Observation]:
        return [seen for past in range(begin, end) for seen in list_groups(folder.stage(past), number - past)]

    def observe_tests(stage: Stage, age: int) -> list[Observation]:
        answered = read_record(stage.validation, Validation).answered
        return observe_held_out(zip((problem.cell for problem in held_out), answered, strict=True), age)

    found = observe(0, number + 1, _observe_training) + observe(-1, number, _observe_trial)
    tested = observe(-1, number + 1, observe_tests)
    before = None if number < 0 else read_forecast(folder.stage(number - 1))
    return make_engineer(settings, environment, folder.stage(number), held_out=held_out).fit_forecast(
        found, tested, before
    )


def _observe_training(stage: Stage, age: int) -> list[Observation]:
    return observe_groups(((problem.cell, group) for problem, group in read_rollouts(stage)), age)


def _observe_trial(stage: Stage, age: int) -> list[Observation]:
    """The groups of the trial after a stage, if one was held; its policy is that of the stage to come, untrained."""
    trial = find_record(stage.trial, Trial)
    return trial.observe(age) if trial else []


def read_forecast(stage: Stage) -> Forecast | None:
    """The forecast after a stage; None in folders of older versions."""
    return find_record(stage.difficulty, Forecast)
