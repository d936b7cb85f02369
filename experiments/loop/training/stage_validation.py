"""The validation of a stage: its policy answers the held-out problems greedily, and answers and outcomes are saved.

A study's final test is made in the same way, with other problems.
"""

from collections.abc import Sequence
from pathlib import Path

from lakewright.engineer.problems import Problem
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_rollouts import write_answers
from lakewright.experiments.loop.training.policy_models import open_policy
from lakewright.experiments.loop.training.trainee import Trainee
from lakewright.policy.training import answer_groups


def validate_stage(trainee: Trainee, stage: Stage, held_out: Sequence[Problem]) -> None:
    """Answers the held-out problems with the policy of a stage, and saves answers and outcomes."""
    _test_policy(trainee, stage.checkpoint, held_out, "validation", stage.plans, stage.validation)


def take_test(trainee: Trainee, policy: Stage, problems: Sequence[Problem], path: Path) -> None:
    """Saves how a policy does on the problems of a test; beside it are the answers.

    Args:
        trainee: the run's trainee.
        policy: the stage whose policy is tested.
        problems: what it is asked.
        path: the file of the outcomes.
    """
    _test_policy(trainee, policy.checkpoint, problems, "test", path.with_name("test_answers.jsonl"), path)


def _test_policy(
    trainee: Trainee, checkpoint: Path, problems: Sequence[Problem], label: str, answers: Path, outcomes: Path
) -> None:
    """Answers problems with the policy in a checkpoint.

    Args:
        trainee: the run's trainee.
        checkpoint, problems: the policy, and what it is asked.
        label: the name of the work on its progress bar.
        answers, outcomes: the files to be written, outcomes last, because a test that has them is done.
    """
    opened, noun = open_policy(trainee.settings, checkpoint, trainee.scores), trainee.environment.space.words.problems
    with opened as (model, tokenizer, policy), progress(label, len(problems), noun) as bar:
        play = trainee.make_play(model, tokenizer)
        answered = answer_groups(policy, play, list(map(trainee.make_task, problems)), on_progress=bar.update)
    write_answers(answers, [trainee.describe_answers(one, play) for one in answered])
    trainee.write_record(outcomes, trainee.record_validation(problems, answered, model, play))
