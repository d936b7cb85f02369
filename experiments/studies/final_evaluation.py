"""The test of a study: greedy answers of each run's last policy to problems that no decision of a run has seen."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.environment import Problem
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_rollouts import write_problems
from lakewright.experiments.loop.settings.run_settings import RunSettings, ValidationSettings
from lakewright.experiments.loop.training.trainee import Trainee, make_trainee


def draw_final_test(settings: RunSettings, chosen: ValidationSettings, held_out: Sequence[Problem], path: Path) -> None:
    """Draws the problems of the test and saves them, unless that is done.

    On the lake they are drawn as a held-out set. Of other environments, if there may be few of a kind, all problems
    of the test are different, and not held out already.

    Args:
        settings, held_out: from the runs.
        chosen: those of the test.
        path: if it is saved.

    Raises InputError if nothing is left.
    """
    if path.exists():
        return
    trainee = make_trainee(msgspec.structs.replace(settings, validation=chosen))
    problems = trainee.draw_test({problem.key for problem in held_out})
    if not problems:
        raise InputError("test: no cell has a problem that is not held out; lower validation.boards")
    write_problems(path, problems)


def take_final_test(trainee: Trainee, policy: Stage, problems: Sequence[Problem], path: Path) -> None:
    """Saves how a policy does on the problems of the test, unless that is done.

    Args:
        trainee, policy: for the run, and the stage whose policy it is.
        problems: the test's problems.
        path: where the result is saved; beside it are answers in text.
    """
    if not path.exists():
        trainee.take_test(policy, problems, path)
