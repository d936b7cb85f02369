"""The evidence in the files of a stage: outcomes, failed answers, figures of the training."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.tally import Case
from lakewright.experiments.environments.lake import Lake
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import Example, Sampled, Validation, read_record
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import Trainee

LAST_STEPS = 8  # steps of the log whose means are the figures of a training
NO_EVIDENCE = ("step", "step_time")  # the line of the log, and the time, which differs from run to run


def read_outcomes(stage: Stage, held_out: Sequence[Problem]) -> Outcomes:
    """The answers of a stage's policy to the held-out problems."""
    validation = read_record(stage.validation, Validation)
    outcomes = Outcomes(
        {
            stratum: msgspec.structs.replace(tally, traits=validation.by_trait.get(stratum, {}))
            for stratum, tally in validation.outcomes.items()
        }
    )
    outcomes.valid = validation.valid
    outcomes.answers = Counter(zip((problem.cell for problem in held_out), validation.answered, strict=True))
    return outcomes


def gather_evidence(trainee: Trainee, stage: Stage) -> dict[str, Any]:
    """Further evidence of a stage, beside its rollouts and outcomes, as arguments of `Engineer.redesign`."""
    settings, environment = trainee.settings, trainee.environment
    validation = read_record(stage.validation, Validation)
    trained = stage.sampled.exists()  # a warm-up has no problems of a design
    return {
        "given": {"agents": settings.teams} if settings.teams else {},
        "training": {**_list_hyperparameters(settings), **(_average_figures(stage) if trained else {})},
        "statistics": read_record(stage.sampled, Sampled).statistics if trained else {},
        "cases": [_make_case(one, environment) for one in validation.examples if one.failure != "none"]
        if validation.cases is None
        else validation.cases,
    }


def _make_case(example: Example, environment: Environment) -> Case:
    """A held-out problem whose answer failed."""
    if not isinstance(environment, Lake):  # in folders of earlier versions, whose validation has no cases
        problem, text = example.problem, f"{example.problem.prompt}\nanswer: {example.answer}"
        return Case(problem.cell.stratum, text, example.failure, example.place)
    row = example.row
    data = {"grid": row.grid, "starts": row.starts, "goals": row.goals, "plan": example.plan, "agent": example.agent}
    return Case(row.size, "", example.failure, example.place, data)


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
