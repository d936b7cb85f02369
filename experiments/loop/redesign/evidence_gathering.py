"""Evidence from the files of a run."""

import msgspec
import numpy as np

from lakewright.engineer.delta import derive_delta
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence import Evidence, Round
from lakewright.engineer.steps import group_by_cell
from lakewright.engineer.tally import Case
from lakewright.experiments.environments.lake import Lake
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    Decision,
    Example,
    Sampled,
    Validation,
    find_record,
    read_record,
)
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts, read_stage_problems
from lakewright.experiments.loop.redesign.stage_engineer import read_forecast
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import Trainee

PREFERRED = "another proposal of yours, which the trial preferred"
LAST_STEPS = 8  # steps of the log whose means are the figures of a training
NO_EVIDENCE = ("step", "step_time")  # the line of the log, and the time, which differs from run to run


def gather_evidence(trainee: Trainee, folder: RunFolder, number: int) -> Evidence:
    """All that is known after stage `number`, which has no decision yet; -1 is the warm-up."""
    settings, environment = trainee.settings, trainee.environment
    *past, now = (folder.stage(earlier) for earlier in range(-settings.engineer.asked_first, number + 1))
    before = find_record(past[-1].proposal, Decision) if past else None
    validation = read_record(now.validation, Validation)
    trained = now.sampled.exists()  # a warm-up has no problems of a design, and no rollouts
    rollouts = read_rollouts(now) if trained else []
    return Evidence(
        design=now.design(),
        given={"agents": settings.teams} if settings.teams else {},
        outcomes=validation.outcomes,
        by_trait=validation.by_trait,
        guideline=environment.space.words.guide(),
        history=[_make_round(stage, environment) for stage in past],
        summary=before.proposal.summary if before else "",
        round=len(past),
        rounds=settings.stages + settings.engineer.asked_first,
        problems=len(read_stage_problems(now)) if trained else None,
        groups=group_by_cell((problem.cell, group) for problem, group in rollouts),
        training={**_list_hyperparameters(settings), **(_average_figures(now) if trained else {})},
        statistics=read_record(now.sampled, Sampled).statistics if trained else {},
        forecast=read_forecast(now),
        cases=[_make_case(one, environment) for one in validation.examples if one.failure != "none"]
        if validation.cases is None
        else validation.cases,
    )


def _make_case(example: Example, environment: Environment) -> Case:
    """A held-out problem whose answer failed."""
    if not isinstance(environment, Lake):  # in folders of earlier versions, whose validation has no cases
        problem, text = example.problem, f"{example.problem.prompt}\nanswer: {example.answer}"
        return Case(problem.cell.stratum, text, example.failure, example.place)
    row = example.row
    data = {"grid": row.grid, "starts": row.starts, "goals": row.goals, "plan": example.plan, "agent": example.agent}
    return Case(row.size, "", example.failure, example.place, data)


def _make_round(stage: Stage, environment: Environment) -> Round:
    """An earlier stage, with the delta that was proposed; if the trial preferred another proposal, with that one's."""
    design, following, decision = stage.design(), stage.read_next(), find_record(stage.proposal, Decision)
    delta = decision.proposal.delta if decision else None
    if decision and delta and following.design not in (design, decision.verdict.design):
        delta = derive_delta(design, following.design.strata, PREFERRED, environment.space)
    outcomes = read_record(stage.validation, Validation).outcomes
    return Round(design, outcomes, delta, "; ".join(following.reasons), stage.rolled_back() is not None)


def _list_hyperparameters(settings: RunSettings) -> dict[str, float | str]:
    parts = {"grpo": settings.grpo, "reward": settings.reward}
    return {
        f"{name}.{field}": value
        for name, part in parts.items()
        for field, value in msgspec.structs.asdict(part).items()
        if type(value) in (int, float, str)  # other values are defaults, or describe the host
    }


def _average_figures(stage: Stage) -> dict[str, float | str]:
    """The means of the last steps' figures."""
    log = stage.read_steps()[-LAST_STEPS:]
    last = log[-1] if log else {}
    names = [name for name, value in last.items() if isinstance(value, int | float) and name not in NO_EVIDENCE]
    return {name: float(np.mean([line[name] for line in log if line.get(name) is not None])) for name in names}
