"""The `Engineer` of a run after a stage, whose steps the loop takes one at a time."""

from collections.abc import Sequence

import msgspec

from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.proposal import Teacher
from lakewright.engineer.redesign import Engineer, EngineerSettings
from lakewright.experiments.loop.records.run_folder import Stage
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
