"""Evidence from the files of a run."""

from collections.abc import Sequence

import msgspec
import numpy as np

from lakewright.engineer.delta import derive_delta
from lakewright.engineer.design import Delta
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence import Evidence, Round
from lakewright.engineer.steps import group_by_cell
from lakewright.engineer.tally import Case
from lakewright.experiments.environments.lake import Lake
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import Decision, Example, Sampled, Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts, read_stage_problems
from lakewright.experiments.loop.settings.run_settings import RunSettings

PREFERRED = "another proposal of yours, which the trial preferred"
LAST_STEPS = 8  # steps of the log whose means are the figures of a training
NO_EVIDENCE = ("step", "step_time")  # the line of the log, and the time, which differs from run to run


def collect_evidence(
    settings: RunSettings, environment: Environment, stages: Sequence[Stage], forecast: Forecast | None = None
) -> Evidence:
    """The evidence after the last of `stages`, which has no decision yet.

    Args:
        settings, environment: of the run.
        stages: all from the first one, or from the warm-up where the engineer is asked after it.
        forecast: after the last one, if there is any.
    """
    *past, now = stages
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
        summary=_read_summary(past[-1]) if past else "",
        round=len(past),
        rounds=settings.stages + settings.engineer.asked_first,
        problems=len(read_stage_problems(now)) if trained else None,
        groups=group_by_cell((problem.cell, group) for problem, group in rollouts),
        training={**_list_hyperparameters(settings), **(_average_figures(now) if trained else {})},
        statistics=read_record(now.sampled, Sampled).statistics if trained else {},
        forecast=forecast,
        cases=[make_case(example, environment) for example in validation.examples if example.failure != "none"],
    )


def make_case(example: Example, environment: Environment) -> Case:
    """A held-out problem whose answer failed, as evidence."""
    stratum = example.problem.cell.stratum
    if isinstance(environment, Lake):
        row = example.row
        ends = {"grid": row.grid, "starts": row.starts, "goals": row.goals}
        data = {**ends, "plan": example.plan, "agent": example.agent}
        return Case(row.size, "", example.failure, example.place, data)
    return Case(stratum, f"{example.problem.prompt}\nanswer: {example.answer}", example.failure, example.place)


def _make_round(stage: Stage, environment: Environment) -> Round:
    note = "; ".join(stage.read_next().reasons)
    undone = stage.rolled_back() is not None
    outcomes = read_record(stage.validation, Validation).outcomes
    return Round(stage.design(), outcomes, _find_change(stage, environment), note, undone)


def _read_summary(stage: Stage) -> str:
    """The teacher's own summary after a stage; empty if it was not asked, as the stage was rolled back."""
    return read_record(stage.proposal, Decision).proposal.summary if stage.proposal.exists() else ""


def _find_change(stage: Stage, environment: Environment) -> Delta | None:
    """The delta that the engineer proposed; if the trial preferred another proposal, the delta of that one."""
    if not stage.proposal.exists():
        return None
    decision, design, following = read_record(stage.proposal, Decision), stage.design(), stage.next_design()
    if decision.proposal.delta is None or following in (design, decision.verdict.design):
        return decision.proposal.delta
    return derive_delta(design, following.strata, PREFERRED, environment.space)


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
