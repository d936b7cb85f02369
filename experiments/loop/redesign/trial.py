"""The trial of a stage's proposals: its policy is rolled out on a few problems of each, and of the current design."""

from collections.abc import Sequence

from lakewright.core_jax.results import Group
from lakewright.engineer.environment import Problem
from lakewright.engineer.trial import TrialWork
from lakewright.experiments.loop.records import Stage
from lakewright.experiments.loop.settings import seed_for
from lakewright.experiments.loop.training import Trainee
from lakewright.experiments.runtime.progress_bars import progress


def start_trial(trainee: Trainee, policy: Stage, purpose: str) -> TrialWork:
    """The rollouts of a trial with the policy of a stage. Chance comes from the run's seed and `purpose`."""
    settings = trainee.settings

    def roll_out(problems: Sequence[Problem], samples: int, turn: int) -> tuple[list[Group], int]:
        with progress("trial", len(problems) * samples, trainee.answers) as bar:
            seed = seed_for(settings.seed, f"{purpose} round {turn}")
            return trainee.roll_out(policy.onward, problems, samples, seed, bar.update)

    seed = seed_for(settings.seed, purpose)
    return TrialWork(trainee.environment, roll_out, settings.trial, settings.objective, seed)
