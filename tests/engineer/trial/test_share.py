"""A trial takes no more answers than its share of those that were trained on since the last redesign."""

import json

import pytest

from lakewright.engineer import Engineer
from lakewright.engineer.settings import EngineerSettings
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.cli.engineer_folder import status_text
from lakewright.experiments.trainers.versions import FolderSettings
from tests.engineer.test_environment import Sums
from tests.support.samples.engineer_folders import begin_engineer, record_some

ENVIRONMENT = Sums()
ANSWERS = 4


def decide(settings: TrialSettings, groups: int) -> tuple[Engineer, int]:
    """An engineer after a redesign from some groups of answers, and how many answers its trial took."""
    taken = 0

    def roll_out(problems, samples, turn):
        nonlocal taken
        taken += len(problems) * samples
        return ENVIRONMENT.groups(problems, [[one.answer, "?"] * (samples // 2) for one in problems]), 1

    engineer = Engineer(ENVIRONMENT, "random", settings=EngineerSettings(trial=settings), roll_out=roll_out)
    problems = engineer.draw(groups)
    engineer.observe(ENVIRONMENT.groups(problems, [[one.answer, "?"] * (ANSWERS // 2) for one in problems]))
    engineer.redesign()
    return engineer, taken


@pytest.mark.parametrize("groups", [8, 64, 256, 1024])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.5, 1.0])
def test_a_trial_takes_no_more_answers_than_its_share(groups, share):
    _, taken = decide(TrialSettings(boards=20, samples=2, share=share), groups)
    assert taken <= share * ANSWERS * groups
    _, any_number = decide(TrialSettings(boards=20, samples=2, share=0), groups)
    assert any_number > 0
    assert (taken > 0) == (any_number <= share * ANSWERS * groups), "as one rival is tried on all its problems"


def test_by_default_a_trial_takes_at_most_a_tenth():
    assert TrialSettings().share == 0.1
    assert decide(TrialSettings(), 100)[1] == 0


def test_a_trial_that_would_take_more_is_left_out_with_a_reason():
    settings = TrialSettings(boards=20, samples=2)
    engineer = Engineer(ENVIRONMENT, "random", settings=EngineerSettings(trial=settings), roll_out=lambda *_: None)
    engineer.observe(ENVIRONMENT.groups(engineer.draw(8), [["?", "?"]] * 8))
    decision = engineer.redesign()
    reason = "trial.share allows 0.1 of the 16 trained on since the last redesign"
    assert decision.trial is None
    assert reason in decision.next.untried
    assert reason in decision.explain()
    assert decision.next.source == "proposal"


def test_a_folder_says_which_trials_were_held_and_which_left_out(tmp_path):
    settings = FolderSettings(trial=TrialSettings(boards=4, samples=2, share=0.5))
    folder = begin_engineer(tmp_path / "e", settings=settings)

    def roll_out(problems, samples, turn):
        return folder.environment.groups(problems, [["?"] * samples] * len(problems)), 7

    for problems in (2, 100):
        record_some(folder, folder.environment.draw(folder.files.read_version(0).design, problems, seed=problems))
        folder.next(roll_out)
    status = folder.status()
    assert (status.trials.held, status.trials.left_out) == (1, 1)
    assert "of the 8 trained on" in status.trials.reason
    assert f"1 trials were held, 1 left out; the last: {status.trials.reason}" in status_text(status)
    assert any("of the 8 trained on" in line for line in folder.log())


def test_a_folder_begun_before_there_was_a_share_tries_as_it_did(tmp_path):
    folder = begin_engineer(tmp_path / "e", settings=FolderSettings(trial=TrialSettings(boards=4, samples=2)))
    setup = json.loads(folder.files.setup_path.read_text())
    del setup["settings"]["trial"]["share"]
    folder.files.setup_path.write_text(json.dumps(setup))
    (tmp_path / "e" / "SHA256SUMS").unlink()
    assert folder.files.read_setup().settings.trial.share == 0
