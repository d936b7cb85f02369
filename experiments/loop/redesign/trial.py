"""Trials: rollouts of a stage's policy on a few problems of each proposed design, and of the current one."""

from collections.abc import Sequence

from lakewright.core_jax.results import Group
from lakewright.core_jax.support import derive_seed
from lakewright.engineer.design import Delta
from lakewright.engineer.environment import Problem
from lakewright.engineer.trial import Trial, TrialWork
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Decision, EngineerTraining, read_record
from lakewright.experiments.loop.redesign.stage_engineer import make_engineer, read_forecast
from lakewright.experiments.loop.training.trainee import Trainee
from lakewright.experiments.runtime.progress_bars import progress


def start_trial(trainee: Trainee, policy: Stage, purpose: str) -> TrialWork:
    """The rollouts of a trial with the policy of a stage. Chance comes from the run's seed and `purpose`."""
    settings = trainee.settings

    def roll_out(problems: Sequence[Problem], samples: int, turn: int) -> tuple[list[Group], int]:
        with progress("trial", len(problems) * samples, trainee.answers) as bar:
            seed = derive_seed(settings.seed, f"{purpose} round {turn}")
            return trainee.roll_out(policy.onward, problems, samples, seed, bar.update)

    seed = derive_seed(settings.seed, purpose)
    return TrialWork(trainee.environment, roll_out, settings.trial, settings.objective, seed)


def try_proposals(trainee: Trainee, folder: RunFolder, number: int) -> Trial | None:
    """The trial of what was proposed after a stage against its design; None where nothing differs from it."""
    stage = folder.stage(number)
    decision = read_record(stage.proposal, Decision)
    others = _list_candidates(trainee, stage, decision)
    work = start_trial(trainee, folder.find_standing(number), f"stage {number} trial")
    engineer = make_engineer(trainee.settings, trainee.environment, stage)
    return engineer.try_proposal(decision.verdict, others, read_forecast(stage), work)


def _list_candidates(trainee: Trainee, stage: Stage, decision: Decision) -> list[Delta]:
    """The designs that are tried beside the proposal: its own candidates, and those of the trained engineer."""
    if not stage.engineer.exists():
        return list(decision.proposal.candidates)
    proposed = read_record(stage.engineer, EngineerTraining).list_proposed(trainee.environment.space)
    return [delta for _, delta in proposed if isinstance(delta, Delta)]
